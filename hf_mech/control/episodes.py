"""Episodes as they are recorded, and the seed of each: no two splits share one."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, check_whole
from hf_mech.data.random_numbers import Dice

# ----------------------------------------------------------------------------------------------------------------------
# The seed of an episode: training, test and play never meet, and no episode comes twice.


Split = Literal["train", "test", "play"]
SPLITS: tuple[Split, ...] = get_args(Split)
MOST_EPISODES = 2**30
"""The most episodes of a split: engines take seeds of 32 bits, and two of them name the split."""

_STREAM = zlib.crc32(b"episode_seed")


def episode_seed(seed: int, split: Split, index: int) -> int:
    """The seed of one episode, for `environment.reset(seed=...)`.

    The two highest bits name the split, so episodes of two splits differ whatever their seeds are. The other 30 bits
    are the index, permuted in an order that the seed decides, so the episodes of one seed and split all differ.

    Args:
        seed: of the data set or of the evaluation; 0 or more.
        split: "train", "test" or "play", the held-out episodes that models are judged on.
        index: the number of the episode in its split, from 0.

    Returns:
        A number in 0 to 2**32 - 1.

    Raises:
        ControlError: a seed or an index out of its range, or another split.

    Example:

    ```python
    >>> [episode_seed(0, "train", 0), episode_seed(0, "train", 1), episode_seed(0, "play", 0)]
    [365172154, 674208463, 2512655802]

    ```
    """
    check_whole("seed", seed, 0)
    check_whole("index", index, 0, MOST_EPISODES - 1)
    if split not in SPLITS:
        raise ControlError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    return SPLITS.index(split) << 30 | _permuted(int(index), int(seed))


def _permuted(index: int, seed: int) -> int:
    """A bijection of the numbers below 2**30: sums, odd products and shifted xors each are one."""
    mask = MOST_EPISODES - 1
    for first, second in Dice(seed, (_STREAM,)).words((3, 2)).tolist():
        index = (index + first) * (second | 1) & mask
        index ^= index >> 15
    return index


# ----------------------------------------------------------------------------------------------------------------------
# A whole episode, and the return-to-go of its steps (Section 3.1 of M-SAT; Section 3 of Decision Transformer).


@dataclass(frozen=True, eq=False)
class Episode:
    """All steps of an episode, from `reset` to its end.

    A decision at step t sees `observations[t]`, takes `actions[t]` and is paid `rewards[t]`.

    Args:
        observations: [steps, height, width, 3] uint8 frames, or [steps, features] float32 vectors.
        actions: [steps, components] int64.
        rewards: [steps] float32, in the units of the environment that was played.
        success: [steps] bool, whether the task was solved by the end of the step.
        terminated: whether the task ended the episode.
        truncated: whether a limit of time ended it.
        seed: what `environment.reset` was given.
        final_observation: after the last step; data sets of rows do not hold it.

    Raises:
        ControlError: no steps, arrays of different lengths or of other shapes, or numbers that are not finite; neither
            terminated nor truncated.

    Example:

    ```python
    >>> import numpy as np
    >>> Episode(
    ...     observations=np.zeros((3, 2), np.float32),
    ...     actions=np.zeros((3, 1), np.int64),
    ...     rewards=np.array([1, 0, 2], np.float32),
    ...     success=np.zeros(3, bool),
    ...     terminated=True,
    ...     truncated=False,
    ...     seed=0,
    ... ).returns_to_go.tolist()
    [3.0, 2.0, 2.0]

    ```
    """

    observations: NDArray[Any]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    success: NDArray[np.bool_]
    terminated: bool
    truncated: bool
    seed: int
    final_observation: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        steps = len(self.rewards)
        if steps == 0:
            raise ControlError("An episode needs at least one step, got none.")
        for name, dimensions in (("observations", (2, 4)), ("actions", (2,)), ("rewards", (1,)), ("success", (1,))):
            array = getattr(self, name)
            if array.ndim not in dimensions or len(array) != steps:
                raise ControlError(
                    f"The {name} of an episode of {steps} steps must have {steps} rows and "
                    f"{' or '.join(map(str, dimensions))} dimensions, got shape {list(array.shape)}."
                )
        for name in ("observations", "rewards"):
            array = getattr(self, name)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise ControlError(
                    f"The {name} of an episode must be finite, that of step {step} of the episode of seed {self.seed} "
                    f"is {array[step].tolist()}; mend the environment, or leave the episode out."
                )
        if not (self.terminated or self.truncated):
            raise ControlError(
                f"The episode of seed {self.seed} has no end: its last step, {steps - 1}, neither terminated nor was "
                "truncated, so its returns-to-go are unknown. Play it to its end, or leave it out."
            )

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def returns_to_go(self) -> NDArray[np.float32]:
        """R_t = r_t + ... + r_T, undiscounted, [steps]; summed in float64."""
        return np.cumsum(self.rewards[::-1], dtype=np.float64)[::-1].astype(np.float32)
