"""An environment with frames that needs no engine: walk to the bright square. `tests.control.squares:Squares-v0`."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete

ID = "tests.control.squares:Squares-v0"
LEFT, RIGHT = 1, 2


class Squares(gymnasium.Env):
    """A row of squares of random colours, one of them bright, seen by a walker in the upper row.

    Args:
        width, height: of a frame; each column is a square.
        seconds: of a step, to make the environment slow.
        endless: whether the goal does not end the episode.
    """

    def __init__(self, width: int = 12, height: int = 8, seconds: float = 0.0, endless: bool = False) -> None:
        self.width, self.height, self.seconds, self.endless = width, height, seconds, endless
        self.observation_space = Box(0, 255, (height, width, 3), np.uint8)
        self.action_space = MultiDiscrete([3, 2])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.colours = self.np_random.integers(0, 200, (self.height, self.width, 3), np.uint8)
        self.place, self.goal = self.np_random.integers(self.width, size=2).tolist()
        self.colours[4:, self.goal] = 255
        return self.frame(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        time.sleep(self.seconds)
        self.place = int(np.clip(self.place + (0, -1, 1)[action[0]], 0, self.width - 1))
        solved = self.place == self.goal
        reward = 1.0 if solved else -0.1 - 0.01 * float(action[1])
        return self.frame(), reward, solved and not self.endless, False, {"is_success": solved}

    def frame(self) -> np.ndarray:
        frame = self.colours.copy()
        frame[:2, self.place] = (255, 0, 0)
        return frame

    def expert(self) -> Expert:
        return Expert()


class Expert:
    """Walks straight to the goal."""

    def reset(self, environment: gymnasium.Env, generator: np.random.Generator) -> None:
        self.squares = environment.unwrapped

    def __call__(self, observation: np.ndarray, info: dict) -> np.ndarray:
        return np.array([RIGHT if self.squares.goal > self.squares.place else LEFT, 0])


gymnasium.register("Squares-v0", entry_point=Squares, max_episode_steps=40)
