"""Star graphs: the path-finding task that next-token predictors fail on (Bachmann & Nagarajan, 2024)."""

from .graphs import StarGraph, StarGraphError

__all__ = ["StarGraph", "StarGraphError"]
