"""Where the player stands, looks and glides to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import vizdoom
from numpy.typing import NDArray

FRICTION = 0.90625  # of its speed, a player keeps so much in an engine's step


@dataclass(frozen=True)
class Player:
    """The player's state.

    Attributes:
        x, y: the place, in map units.
        speed_x, speed_y: map units in one of the engine's steps.
        angle: degrees, 0 to the east, counted to the left.
        ready: whether a shot can be fired.
    """

    x: float
    y: float
    speed_x: float
    speed_y: float
    angle: float
    ready: bool

    def after(self, steps: float) -> NDArray[np.float64]:
        """The place [2] after some of the engine's steps without walking."""
        glide = (1 - FRICTION**steps) / (1 - FRICTION)
        return np.array([self.x + glide * self.speed_x, self.y + glide * self.speed_y])

    def angle_to(self, point: tuple[float, float]) -> float:
        """The degrees to turn to the left to face a point, -180 to 180."""
        return self.to_turn(math.degrees(math.atan2(point[1] - self.y, point[0] - self.x)))

    def to_turn(self, direction: float) -> float:
        """The degrees to turn to the left to face a direction, -180 to 180."""
        return (direction - self.angle + 180.0) % 360.0 - 180.0


def player(game: vizdoom.DoomGame) -> Player:
    """The player's state now."""
    read, names = game.get_game_variable, vizdoom.GameVariable
    return Player(
        x=read(names.POSITION_X),
        y=read(names.POSITION_Y),
        speed_x=read(names.VELOCITY_X),
        speed_y=read(names.VELOCITY_Y),
        angle=read(names.ANGLE),
        ready=bool(read(names.ATTACK_READY)),
    )
