"""Errors of hypotheses about hidden states."""


class HypothesisError(ValueError):
    """A hypothesis that contradicts itself, or hidden states that do not fit it."""
