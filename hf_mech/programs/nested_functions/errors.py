"""Errors of nested function evaluation."""

from __future__ import annotations


class NestedFunctionError(ValueError):
    """Base of all errors of nested function evaluation."""


class SplitError(NestedFunctionError):
    """An unknown vocabulary or split, or an invalid seed, size or range of examples."""


class PromptError(NestedFunctionError):
    """A text other than definitions and an expression, or an expression without a value."""
