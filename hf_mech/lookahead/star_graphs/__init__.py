"""Star graphs: the path-finding task that next-token predictors fail on (Bachmann & Nagarajan, 2024)."""

from hf_mech.lookahead.star_graphs.counterexamples import COUNTEREXAMPLES, parity_graph, parity_rows
from hf_mech.lookahead.star_graphs.graphs import (
    DatasetSettingsError,
    GraphError,
    LayoutError,
    SplitError,
    StarGraph,
    StarGraphError,
)
from hf_mech.lookahead.star_graphs.layouts import inference_prompts, lay_out, read_paths
from hf_mech.lookahead.star_graphs.tokenizer import star_graph_tokenizer

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
