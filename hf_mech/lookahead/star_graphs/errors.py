"""Errors of the star graphs: `ValueError`s whose text says what to do."""

from __future__ import annotations


class StarGraphError(ValueError):
    """Base of all errors of the star graphs; raised itself for numbers that make no star graph."""


class GraphError(StarGraphError):
    """Edges, a start or a goal that are not a star graph of the given degree, length and names."""


class LayoutError(StarGraphError):
    """A layout that does not exist or does not fit the graph, or rows that are not those of the graph."""


class DatasetSettingsError(StarGraphError):
    """An invalid setting of the dataset builder, or settings that contradict each other."""


class SplitError(StarGraphError):
    """A graph in a split that it does not belong to."""
