"""A whole episode, and the return-to-go of its steps (Section 3.1 of M-SAT; Section 3 of Decision Transformer)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_mech.control.data_errors import EpisodeWithoutEndError, TrajectoryError


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
        TrajectoryError: no steps, arrays of different lengths or of other shapes, or numbers that are not finite.
        EpisodeWithoutEndError: neither terminated nor truncated.

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
            raise TrajectoryError("An episode needs at least one step, got none.")
        for name, dimensions in (("observations", (2, 4)), ("actions", (2,)), ("rewards", (1,)), ("success", (1,))):
            array = getattr(self, name)
            if array.ndim not in dimensions or len(array) != steps:
                raise TrajectoryError(
                    f"The {name} of an episode of {steps} steps must have {steps} rows and "
                    f"{' or '.join(map(str, dimensions))} dimensions, got shape {list(array.shape)}."
                )
        for name in ("observations", "rewards"):
            array = getattr(self, name)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise TrajectoryError(
                    f"The {name} of an episode must be finite, that of step {step} of the episode of seed {self.seed} "
                    f"is {array[step].tolist()}; mend the environment, or leave the episode out."
                )
        if not (self.terminated or self.truncated):
            raise EpisodeWithoutEndError(
                f"The episode of seed {self.seed} has no end: its last step, {steps - 1}, neither terminated nor was "
                "truncated, so its returns-to-go are unknown. Play it to its end, or leave it out."
            )

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def returns_to_go(self) -> NDArray[np.float32]:
        """R_t = r_t + ... + r_T, undiscounted, [steps]; summed in float64."""
        return np.cumsum(self.rewards[::-1], dtype=np.float64)[::-1].astype(np.float32)
