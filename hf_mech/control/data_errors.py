"""Errors of episodes and of data sets of them. Each message names the fault and its remedy."""

from __future__ import annotations

from hf_mech.control.errors import ControlError


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
