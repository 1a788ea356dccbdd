"""Errors of the formal languages: `ValueError`s whose text says what to do."""

from __future__ import annotations


class FormalLanguageError(ValueError):
    """Base of all errors of the formal languages."""


class TaskError(FormalLanguageError):
    """A task that does not exist, a length in which it has no example, or a count or seed out of its range."""


class LayoutError(FormalLanguageError):
    """A layout that does not exist, a tokenizer of something else, or rows that do not fit the task."""


class DatasetSettingsError(FormalLanguageError):
    """An invalid setting of the dataset builder, or settings that contradict each other."""
