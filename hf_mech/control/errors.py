"""The errors of environments, episodes and their data. Each message names the fault and its remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

# ----------------------------------------------------------------------------------------------------------------------
# Errors of environments and policies. Each message names the fault and its remedy.


class ControlError(ValueError):
    """Base of all errors of environments, policies and their data."""


class MissingExtraError(ControlError, ImportError):
    """A package that an extra of hf-mech installs is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed. Run: pip install 'hf-mech[{extra}]'")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)  # a worker process hands it on


class EnvironmentIdError(ControlError):
    """No environment has that id, or its package is not imported."""


class EnvironmentOptionError(ControlError):
    """An option of an environment that does not exist or is out of its range."""


class SpaceError(ControlError):
    """An action or observation space that decision transformers of hf_mech cannot use."""


class ActionError(ControlError):
    """An action with the wrong number of components, or with a value out of its component's range."""


class EpisodeError(ControlError):
    """A step without an episode: before the first `reset`, or after the end of the episode."""


class PolicyError(ControlError):
    """No such policy, a policy that the environment does not have, or a setting out of its range."""


class SeedError(ControlError):
    """A seed, a split or the number of an episode out of its range."""


class EngineError(ControlError):
    """The game engine cannot be started, or it ended by itself."""


def check_whole(name: str, value: Any, least: int, most: int | None, error: type[ControlError]) -> None:
    """Raises the error if the value is not a whole number, or is not in `least` to `most`."""
    expected = f"a whole number, {least} or more" if most is None else f"a whole number, {least} to {most}"
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        raise error(f"{name} must be {expected}, got {value!r}.")


def check_frame_size(frame_size: Any, least: tuple[int, int], most: tuple[int, int]) -> None:
    """Raises EnvironmentOptionError if the value is not (height, width) within these bounds."""
    pair = isinstance(frame_size, tuple | list) and len(frame_size) == 2
    if not pair or not all(
        isinstance(size, int) and low <= size <= high for size, low, high in zip(frame_size, least, most, strict=True)
    ):
        raise EnvironmentOptionError(
            f"frame_size must be (height, width), whole numbers from {least} to {most}, got {frame_size!r}."
        )


# ----------------------------------------------------------------------------------------------------------------------
# Errors of episodes and of data sets of them. Each message names the fault and its remedy.


class TrajectoryError(ControlError):
    """Base of all errors of episodes and data sets; raised itself for arrays that make no episode."""


class EpisodeWithoutEndError(TrajectoryError):
    """An episode that neither terminated nor was truncated: its returns-to-go are unknown."""


class RowOrderError(TrajectoryError):
    """Rows of an episode that are not neighbours, or not in the order of its steps."""


class MissingColumnsError(TrajectoryError):
    """A data set without the columns of trajectories."""


class ObservationError(TrajectoryError):
    """Observations that are neither frames nor vectors, differ in size, or cannot be read."""


class ActionSizesError(TrajectoryError):
    """Actions of another action space than the one expected."""


class ContextLengthError(TrajectoryError):
    """A context length out of its range, or a window that is longer than the context."""


class TrajectorySettingsError(TrajectoryError):
    """An invalid setting of a data set of trajectories, or a setting that it does not take."""


class MinariError(TrajectoryError):
    """A Minari data set that cannot be read as trajectories, or a name that cannot be written."""


class ShardError(TrajectoryError):
    """A shard that no machine could generate."""
