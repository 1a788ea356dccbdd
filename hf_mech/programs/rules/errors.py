"""Errors of texts and rules."""


class RuleError(ValueError):
    """A rule that is none, or settings out of range."""
