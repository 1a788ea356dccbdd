"""Star graphs: the path-finding task that next-token predictors fail on (Bachmann & Nagarajan, 2024)."""

from hf_mech.lookahead.star_graphs.graphs import StarGraph
from hf_mech.lookahead.star_graphs.layouts import inference_prompts, lay_out, read_paths, star_graph_tokenizer
from hf_mech.lookahead.star_graphs.rows import COUNTEREXAMPLES, parity_graph, parity_rows

__all__ = [
    "COUNTEREXAMPLES",
    "StarGraph",
    "inference_prompts",
    "lay_out",
    "parity_graph",
    "parity_rows",
    "read_paths",
    "star_graph_tokenizer",
]
