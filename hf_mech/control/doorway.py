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
        render_mode: "rgb_array" to have `render` return a picture of the last round, or None.

    Raises:
        ControlError: rounds is no whole number, 1 or more.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(self, rounds: int = 10, render_mode: str | None = None) -> None:
        check_whole("rounds", rounds, 1)
        self.rounds, self.render_mode = rounds, render_mode
        self.action_space = MultiDiscrete([3, 3])
        self.observation_space = Box(0.0, 1.0, (2,), np.float32)
        self._left = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode; all are alike."""
        super().reset(seed=seed)
        self._left, self._failures = self.rounds, 0
        self._last, self._passed = (WAIT, WAIT), list[bool]()
        return self._observe(False), {"is_success": False}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One round."""
        if self._left == 0:
            raise ControlError("The episode is over, or none has begun; call reset() first.")
        self._last = int(action[0]), int(action[1])
        passed = (self._last[0] == WAIT) != (self._last[1] == WAIT)
        self._passed.append(passed)
        self._left -= 1
        self._failures += not passed
        over = self._left == 0
        return self._observe(passed), passed / self.rounds, over, False, {"is_success": over and self._failures == 0}

    def render(self) -> NDArray[np.uint8] | None:
        """The picture of the last round, if `render_mode` is "rgb_array"; before the first one both robots wait."""
        return draw_round(self._last, self._passed, self.rounds) if self.render_mode == "rgb_array" else None

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


# ----------------------------------------------------------------------------------------------------------------------
# A round as a picture: the door above, the robots in front of it or in one of its wings, all rounds so far below.


_SIZE = (64, 96)
_FLOOR, _WALL, _GOOD, _BAD, _TO_COME = (236, 232, 224), (92, 92, 92), (88, 156, 88), (200, 72, 60), (205, 205, 205)
_ROBOTS = ((11, 110, 153), (233, 160, 59))
_WALL_ROWS, _DOOR = (14, 24), (32, 64)
_ROBOT = 12
"""Pixels of a robot's side."""
_WAITING, _WINGS = ((38, 14), (38, 70)), {1: 34, 2: 50}
"""The corners (row, column) of robots that wait, and the columns of robots in the left and in the right wing."""


def draw_round(action: tuple[int, int], passed: list[bool], rounds: int) -> NDArray[np.uint8]:
    """The picture [64, 96, 3] of a round.

    Args:
        action: of both robots in the last round.
        passed: whether each round so far succeeded, the last one, too; the door has its colour.
        rounds: of the episode.
    """
    picture = np.empty((*_SIZE, 3), np.uint8)
    picture[:] = _FLOOR
    picture[slice(*_WALL_ROWS)] = _WALL
    door = (_GOOD if passed[-1] else _BAD) if passed else _FLOOR
    picture[slice(*_WALL_ROWS), slice(*_DOOR)] = door
    picture[slice(*_WALL_ROWS), sum(_DOOR) // 2] = _WALL  # between the wings
    for robot, (wing, colour) in enumerate(zip(action, _ROBOTS, strict=True)):
        # The second robot stands lower: two robots in one wing are both seen.
        row, column = _WAITING[robot] if wing == WAIT else (_WALL_ROWS[0] - 7 + 6 * robot, _WINGS[wing])
        picture[row : row + _ROBOT, column : column + _ROBOT] = colour
    edges = np.linspace(0, _SIZE[1], rounds + 1).astype(int)
    for number in range(rounds):
        done = number < len(passed)
        colour = (_GOOD if passed[number] else _BAD) if done else _TO_COME
        picture[-8:-2, edges[number] + 1 : edges[number + 1]] = colour
    return picture
