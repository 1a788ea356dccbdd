"""The metric's function over arrays, for code that does not need an `evaluate` module."""

from hf_mech.metrics.path_accuracy.path_accuracy import paths_right

__all__ = ["paths_right"]
