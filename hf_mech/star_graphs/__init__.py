"""Star graphs: the path-finding task that next-token predictors fail on (Bachmann & Nagarajan, 2024)."""

from .counterexamples import COUNTEREXAMPLES
from .errors import DatasetSettingsError, GraphError, LayoutError, SplitError, StarGraphError
from .graphs import StarGraph
from .layouts import inference_prompts, lay_out, read_paths
from .parity import parity_graph, parity_rows
from .tokenizer import star_graph_tokenizer

__all__ = [
    "COUNTEREXAMPLES",
    "DatasetSettingsError",
    "GraphError",
    "LayoutError",
    "SplitError",
    "StarGraph",
    "StarGraphError",
    "inference_prompts",
    "lay_out",
    "parity_graph",
    "parity_rows",
    "read_paths",
    "star_graph_tokenizer",
]
