"""What can go wrong with templatic generation: `ValueError`s whose text says what to do, and one warning."""

from __future__ import annotations


class TemplaticError(ValueError):
    """Base of all errors of templatic generation."""


class TaskError(TemplaticError):
    """A task or split that does not exist, or a seed, size or range of examples that makes no sense."""


class TemplateError(TemplaticError):
    """A template that is none, or values that do not fit it."""


class PromptError(TemplaticError):
    """A prompt that is not k examples and a cue, or whose parts follow no common template."""


class GrammarWarning(UserWarning):
    """A prompt that can be read, and yet breaks one of the additional constraints of App. D."""
