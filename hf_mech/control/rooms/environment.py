"""Four rooms with a player and a goal: small frames, two components, thousands of steps a second."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import EpisodeError, check_frame_size
from hf_mech.control.geometry.navigation import Navigator, steer
from hf_mech.control.geometry.sight import distances_to_walls
from hf_mech.control.rooms.drawing import Painter
from hf_mech.control.rooms.plan import BODY, GOAL, GOAL_RADIUS, SIZE, walls

LEAST_SIZE, MOST_SIZE = (8, 8), (512, 512)
TURN, STEP = 15.0, 0.25
"""Degrees and lengths of a decision."""
COST = 0.001
"""Of a step; the goal pays 1."""


class RoomsEnvironment(gymnasium.Env[NDArray[np.uint8], NDArray[np.int64]]):
    """Find the goal, a green pillar that stands in the same place always; begin anywhere.

    An action is (0 no turn, 1 left, 2 right; 0 no step, 1 forward, 2 backward).

    Args:
        frame_size: (height, width) of the observations.
        render_mode: "rgb_array" to have `render` return the frame, or None.

    Raises:
        EnvironmentOptionError: a frame that is too small or too large.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, frame_size: tuple[int, int] = (36, 64), render_mode: str | None = None) -> None:
        check_frame_size(frame_size, LEAST_SIZE, MOST_SIZE)
        self.render_mode = render_mode
        self.action_space = MultiDiscrete([3, 3])
        self.observation_space = Box(0, 255, (*frame_size, 3), np.uint8)
        self._walls = walls()
        self._paint = Painter(*frame_size)
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begins an episode; the same seed begins the same one."""
        super().reset(seed=seed)
        self._over = False
        self.angle = float(self.np_random.uniform(0, 360))
        while True:
            self.x, self.y = self.np_random.uniform(0, SIZE, 2).tolist()
            if self._fits(self.x, self.y) and not self._at_goal():
                return self._observe(), {"is_success": False}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Turns, then walks; walls stop the player, who slides along them."""
        if self._over:
            raise EpisodeError("The episode is over, or none has begun; call reset() first.")
        turn, walk = (0, 1, -1)[action[0]], (0, 1, -1)[action[1]]
        self.angle = (self.angle + turn * TURN) % 360.0
        dx = walk * STEP * math.cos(math.radians(self.angle))
        dy = walk * STEP * math.sin(math.radians(self.angle))
        for step_x, step_y in ((dx, dy), (dx, 0.0), (0.0, dy)) if walk else ():
            if self._fits(self.x + step_x, self.y + step_y):
                self.x, self.y = self.x + step_x, self.y + step_y
                break
        self._over = self._at_goal()
        return self._observe(), self._over - COST, self._over, False, {"is_success": self._over}

    def render(self) -> NDArray[np.uint8] | None:
        """The frame, if `render_mode` is "rgb_array"."""
        return self._observe() if self.render_mode == "rgb_array" else None

    def expert(self) -> RoomsExpert:
        """Walks the shortest way to the goal."""
        return RoomsExpert()

    def _observe(self) -> NDArray[np.uint8]:
        return self._paint(self.x, self.y, self.angle)

    def _fits(self, x: float, y: float) -> bool:
        return bool(distances_to_walls(np.array([x, y]), self._walls) >= BODY)

    def _at_goal(self) -> bool:
        return math.dist((self.x, self.y), GOAL) < GOAL_RADIUS + BODY


class RoomsExpert:
    """Turns to the farthest point of the shortest way that it can walk to, and walks."""

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._player: RoomsEnvironment = environment.unwrapped  # type: ignore[assignment]

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """(turn, walk)."""
        me = self._player
        x, y = _navigator().target(me.x, me.y)
        off = math.degrees(math.atan2(y - me.y, x - me.x)) - me.angle
        return np.array(steer((off + 180.0) % 360.0 - 180.0, aimed_within=TURN / 2, walk_within=40.0))


@cache
def _navigator() -> Navigator:
    return Navigator(walls(), GOAL, clearance=1.5 * BODY, cell=0.1)
