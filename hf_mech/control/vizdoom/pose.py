"""Where the player stands and looks, and the angles between things."""

from __future__ import annotations

import math
from dataclasses import dataclass

import vizdoom


@dataclass(frozen=True)
class Pose:
    """A place and a direction: x and y in map units, the angle in degrees, 0 to the east, counted to the left."""

    x: float
    y: float
    angle: float


def pose(game: vizdoom.DoomGame) -> Pose:
    """The player's pose."""
    variable = vizdoom.GameVariable
    return Pose(
        game.get_game_variable(variable.POSITION_X),
        game.get_game_variable(variable.POSITION_Y),
        game.get_game_variable(variable.ANGLE),
    )


def angle_to(here: Pose, point: tuple[float, float]) -> float:
    """The degrees to turn to the left to face a point, -180 to 180."""
    return wrapped(math.degrees(math.atan2(point[1] - here.y, point[0] - here.x)) - here.angle)


def wrapped(degrees: float) -> float:
    """The same angle in -180 to 180."""
    return (degrees + 180.0) % 360.0 - 180.0


__all__ = ["Pose", "angle_to", "pose", "wrapped"]
