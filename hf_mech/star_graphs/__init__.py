"""Star graphs: the path-finding task that next-token predictors fail on (Bachmann & Nagarajan, 2024)."""

from .errors import DatasetSettingsError, GraphError, LayoutError, SplitError, StarGraphError
from .graphs import StarGraph

__all__ = ["DatasetSettingsError", "GraphError", "LayoutError", "SplitError", "StarGraph", "StarGraphError"]
