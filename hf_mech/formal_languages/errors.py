"""Errors of the formal languages: `ValueError`s whose text says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np


class FormalLanguageError(ValueError):
    """Base of all errors of the formal languages."""


class TaskError(FormalLanguageError):
    """A task that does not exist, a length in which it has no example, or a count or seed out of its range."""


class LayoutError(FormalLanguageError):
    """A layout that does not exist, a tokenizer of something else, or rows that do not fit the task."""


class DatasetSettingsError(FormalLanguageError):
    """An invalid setting of the dataset builder, or settings that contradict each other."""


def check_whole(name: str, value: Any, least: int, error: type[FormalLanguageError] = TaskError) -> None:
    """Raises the error (TaskError) if the value is not a whole number, or is less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise error(f"{name} must be a whole number, {least} or more, got {value!r}.")
