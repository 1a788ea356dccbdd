"""Which split a graph belongs to: a hash of its edges decides, so that no list of graphs has to be kept."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hf_mech.lookahead.star_graphs.errors import SplitError
from hf_mech.lookahead.star_graphs.graphs import StarGraph

Split = Literal["train", "test"]
PARTS = 16  # one part of all graphs is for testing, the others for training


def share_of(split: Split) -> tuple[int, int]:
    """The share of all graphs that belong to the split, as a fraction."""
    return (1, PARTS) if split == "test" else (PARTS - 1, PARTS)


def in_split(graph: StarGraph, rows: NDArray[np.int64], split: Split) -> NDArray[np.bool_]:
    """True for the rows whose graph belongs to the split.

    Two rows have the same graph if they have the same edges, in any order and with any goal. The seed plays no part, so
    the training rows of one seed and the test rows of another share no graph either.

    Args:
        graph: of the rows.
        rows: [count, prompt_length or more].

    Returns:
        [count].
    """
    edges = graph.edges_of(rows).astype(np.uint64)
    # A sum does not depend on the order of its terms.
    keys = _mixed(edges[:, :, 0] * np.uint64(graph.num_nodes) + edges[:, :, 1]).sum(1)
    return (_mixed(keys) % np.uint64(PARTS) == 0) == (split == "test")


def check_split(graph: StarGraph, rows: NDArray[np.int64], split: Split) -> None:
    """Raises SplitError if the graph of a row [count, prompt_length or more] does not belong to the split."""
    wrong = np.flatnonzero(~in_split(graph, rows, split))
    if len(wrong):
        edges = graph.edges_of(rows[wrong[:1]])[0].tolist()
        raise SplitError(
            f"{len(wrong)} of {len(rows)} graphs of the split {split!r} belong to the other split, first the one with "
            f"the edges {edges}. This is an error of the generator; please report it."
        )


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words as different as random ones, the same for the same word (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
