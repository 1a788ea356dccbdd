"""The expert of Deadly Corridor: it knows where the foes stand, and shoots them before they see it.

The foes stand in alcoves behind corners. A foe sees along the line between its centre and the player's, but a bullet
hits any part of a foe's box. So there are places where a sliver of the box shows and the foe sees nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hf_mech.control.geometry.navigation import steer
from hf_mech.control.geometry.sight import clear, exposed
from hf_mech.control.vizdoom.maps import walls
from hf_mech.control.vizdoom.player import Player, player
from hf_mech.control.vizdoom.turning import STILL, next_turn

if TYPE_CHECKING:
    from hf_mech.control.vizdoom.environment import ViZDoomEnvironment

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
