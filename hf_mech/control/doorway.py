"""Two robots at a door that only one can pass: joint actions that independent components cannot express.

In every round each robot waits (0), or goes through the left (1) or the right wing (2) of the door. The round succeeds
if exactly one of them goes. So (0, 1), (0, 2), (1, 0) and (2, 0) are equally good, and all others are bad.

With an expert that takes a good action at random, each robot waits half of the time. A model whose components are
independent given the state learns just that. Its most likely action is that both wait, which is bad, and a sampled one
is good half of the time. A model that sees the first component before it decides on the second can always be right.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, check_whole

WAIT = 0


class DoorwayEnvironment(gymnasium.Env[NDArray[np.float32], NDArray[np.int64]]):
    """Some rounds at the door.

    An observation is (the share of the rounds that is left, whether the last round succeeded). The return is the
    share of the rounds that succeeded; an episode is a success if all did.

    Args:
        rounds: the steps of an episode.

    Raises:
        ControlError: rounds is no whole number, 1 or more.
    """

    def __init__(self, rounds: int = 10) -> None:
        check_whole("rounds", rounds, 1)
        self.rounds = rounds
        self.action_space = MultiDiscrete([3, 3])
        self.observation_space = Box(0.0, 1.0, (2,), np.float32)
        self._left = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode; all are alike."""
        super().reset(seed=seed)
        self._left, self._failures = self.rounds, 0
        return self._observe(False), {"is_success": False}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One round."""
        if self._left == 0:
            raise ControlError("The episode is over, or none has begun; call reset() first.")
        passed = (int(action[0]) == WAIT) != (int(action[1]) == WAIT)
        self._left -= 1
        self._failures += not passed
        over = self._left == 0
        return self._observe(passed), passed / self.rounds, over, False, {"is_success": over and self._failures == 0}

    def expert(self) -> DoorwayExpert:
        """Takes each good joint action with the same probability."""
        return DoorwayExpert()

    def _observe(self, passed: bool) -> NDArray[np.float32]:
        return np.array([self._left / self.rounds, passed], np.float32)


class DoorwayExpert:
    """Takes (0, 1), (0, 2), (1, 0) or (2, 0), each as likely."""

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._generator = generator

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """The actions of both robots, [2]."""
        action = np.zeros(2, np.int64)
        goes, wing = divmod(int(self._generator.integers(4)), 2)
        action[goes] = 1 + wing
        return action
