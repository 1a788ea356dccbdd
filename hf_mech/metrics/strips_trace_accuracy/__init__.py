"""The metric's function over arrays, for code that does not need an `evaluate` module."""

from hf_mech.metrics.strips_trace_accuracy.strips_trace_accuracy import traces_right

__all__ = ["traces_right"]
