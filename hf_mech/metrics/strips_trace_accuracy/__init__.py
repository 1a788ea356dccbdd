"""The metric's function over arrays, for code that does not need an `evaluate` module."""

from .strips_trace_accuracy import traces_right

__all__ = ["traces_right"]
