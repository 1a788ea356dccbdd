"""The expert of My Way Home: it knows the map and where it stands, and walks the shortest way to the vest."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hf_mech.control.geometry.navigation import Navigator, steer
from hf_mech.control.vizdoom.maps import walls
from hf_mech.control.vizdoom.player import player

if TYPE_CHECKING:
    import vizdoom

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
