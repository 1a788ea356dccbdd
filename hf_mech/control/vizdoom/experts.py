"""The recorded experts of My Way Home and Deadly Corridor, and what they know of the player."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import vizdoom
from numpy.typing import NDArray

from hf_mech.control.geometry import STILL, Navigator, clear, exposed, next_turn, steer
from hf_mech.control.vizdoom.scenarios import walls

if TYPE_CHECKING:
    from hf_mech.control.vizdoom.environment import ViZDoomEnvironment


# ----------------------------------------------------------------------------------------------------------------------
# Where the player stands, looks and glides to.


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


# ----------------------------------------------------------------------------------------------------------------------
# The expert of My Way Home: it knows the map and where it stands, and walks the shortest way to the vest.


VEST = (1040.0, -352.0)
CLEARANCE = 20.0
"""Map units between the way and the walls; the player's box is 16 to each side."""
CELL = 8.0
WALK_WITHIN = 40.0
"""Degrees: the expert walks while it turns if its target is no further to the side."""
AIMED_WITHIN = 5.0
"""Degrees: less than the least turn of a decision."""


class MyWayHomeExpert:
    """Turns to the farthest point of the shortest way that it can walk to, and walks."""

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._game: vizdoom.DoomGame = environment.unwrapped.game  # type: ignore[attr-defined]
        self._way = _navigator()

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """(turn, walk)."""
        me = player(self._game)
        off = me.angle_to(self._way.target(me.x, me.y))
        return np.array(steer(off, AIMED_WITHIN, WALK_WITHIN))


@cache
def _navigator() -> Navigator:
    """One for all episodes of the process: what it finds out holds for all of them."""
    return Navigator(walls("my_way_home"), VEST, CLEARANCE, CELL)


# ----------------------------------------------------------------------------------------------------------------------
# The expert of Deadly Corridor: it knows where the foes stand, and shoots them before they see it.
#
# The foes stand in alcoves behind corners. A foe sees along the line between its centre and the player's, but a bullet
# hits any part of a foe's box. So there are places where a sliver of the box shows and the foe sees nothing.


DANGER = {"ChaingunGuy": 2, "ShotgunGuy": 1, "Zombieman": 0}
"""The foes by their engine names, the most dangerous with the greatest number. Dead ones have other names."""
RADIUS = 20.0  # half the width of a foe's box

STAND, BACKWARD = 0, 2
FIRST_FIGHT = 100.0
"""The foes of the first fight see the player from the start; the expert backs up while it is west of here."""
BEHIND = 40.0  # a foe so far behind the player is left alone
MARGIN = 0.2  # degrees between the aim and the border of what shows
CORRIDOR_AIMED_WITHIN, CORRIDOR_WALK_WITHIN = 5.0, 60.0  # degrees off the corridor's direction
PATIENCE = 9  # decisions that aiming may take; the expert walks on if a foe needs more
GLIDE = 4.0
"""The engine's steps from a decision to fire to the bullet; the player glides on meanwhile."""


class DeadlyCorridorExpert:
    """Walks until a part of a foe shows, stops, aims at it and fires a single shot.

    Only the first shot after a pause goes where the player looks, so the trigger is never held. A shot leaves with the
    decision after the one that fires, so the player does not turn in that one.
    """

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._environment: ViZDoomEnvironment = environment.unwrapped  # type: ignore[assignment]
        self._walls = walls("deadly_corridor", opaque=True)
        self._turning = 0

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """(turn, walk, strafe, attack)."""
        turned, *_, fired = self._environment.last_action
        self._turning = self._turning + 1 if turned else 0
        me = player(self._environment.game)
        fighting_walk = BACKWARD if me.x < FIRST_FIGHT else STAND
        if fired:
            return np.array([STILL, fighting_walk, STAND, 0])
        if (aim := self._aim(me)) is None:
            return np.array([*_along_corridor(me), STAND, 0])
        turn, decisions = aim
        return np.array([turn, fighting_walk, STAND, int(me.ready and decisions <= 1)])

    def _aim(self, me: Player) -> tuple[int, int] | None:
        """The turn towards the best foe and the decisions until the player aims at it, or None if no foe can be hit.

        A foe that sees the player comes first, then the more dangerous one, then the one that is aimed at sooner.
        """
        objects = self._environment.game.get_state().objects
        foes = [foe for foe in objects if foe.name in DANGER and foe.position_x > me.x - BEHIND]
        if not foes:
            return None
        centers = np.array([[foe.position_x, foe.position_y] for foe in foes])
        angles = exposed(me.after(GLIDE), centers, RADIUS, self._walls)
        seen_by = clear(me.after(0), centers, self._walls)
        aims = []
        for foe, (low, high), sees in zip(foes, angles, seen_by, strict=True):
            plan = next_turn(self._turning, me.to_turn(low) + MARGIN, me.to_turn(low) + high - low - MARGIN)
            if plan is not None and plan[1] <= PATIENCE:
                aims.append(((not sees, -DANGER[foe.name], plan[1]), plan))
        return min(aims)[1] if aims else None


def _along_corridor(me: Player) -> tuple[int, int]:
    """The turn and the walk towards the end of the corridor, in its middle."""
    return steer(me.angle_to((me.x + 100, 0.0)), CORRIDOR_AIMED_WITHIN, CORRIDOR_WALK_WITHIN)
