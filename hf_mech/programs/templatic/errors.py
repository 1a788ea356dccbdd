"""Errors of templatic generation, with messages that name the remedy, and one warning."""

from __future__ import annotations


class TemplaticError(ValueError):
    """Base of all errors of templatic generation."""


class TaskError(TemplaticError):
    """An unknown task or split, or an invalid seed, size or range of examples."""


class TemplateError(TemplaticError):
    """An invalid template, or values that do not fit the template."""


class PromptError(TemplaticError):
    """A text other than k examples and a cue, or examples and a cue without a common template."""


class GrammarWarning(UserWarning):
    """A readable prompt breaks one of the additional constraints of App. D."""
