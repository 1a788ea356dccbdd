"""Parity as a star graph: the reduction of Theorem 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead.star_graphs.errors import GraphError, StarGraphError
from hf_mech.lookahead.star_graphs.graphs import StarGraph


def parity_graph(bits: int, num_nodes: int) -> StarGraph:
    """The star graphs of strings of so many bits: two arms with a node for each bit, one more, and the start.

    The proof has n bits and vertices up to n, but only n - 1 bits decide on an edge; k bits need n = k + 1.

    Raises:
        StarGraphError: fewer than 1 bit, or too few names.
    """
    check_whole("bits", bits, 1, StarGraphError)
    return StarGraph(2, bits + 2, num_nodes)


def parity_rows(bits: NDArray[np.int64], num_nodes: int | None = None) -> NDArray[np.int64]:
    """The star graph of each string of bits: the first step to the goal tells the parity (Theorem 5, Figure 9).

    The vertices are -n to n, and vertex v has the name v + n. The edges 0 -> 1 and 0 -> -1 come first; the bit x[i]
    decides whether i and -i are joined to i + 1 and -i - 1 (0), or crossed (1). The goal is vertex n. The path goes
    through vertex 1 if the number of ones is even, through -1 if it is odd. The edges stand in their order, so a row is
    a function of its bits.

    Args:
        bits: [count, bits] of 0 and 1.
        num_nodes: the number of names; None for the fewest, 2 bits + 3.

    Returns:
        [count, row_length] of [`parity_graph`].

    Raises:
        GraphError: other numbers than 0 and 1.
        StarGraphError: strings without a bit, or too few names.

    Example:

    ```python
    >>> " ".join(parity_graph(1, 5).tokens[i] for i in parity_rows(np.array([[1]]))[0])
    '2 3 | 2 1 | 3 0 | 1 4 / 2 4 = 2 1 4 <eos>'

    ```
    """
    if bits.ndim != 2 or not np.isin(bits, (0, 1)).all():
        raise GraphError(f"bits must be an array [count, bits] of 0 and 1, got one of shape {list(bits.shape)}.")
    count, size = bits.shape
    graph = parity_graph(size, 2 * size + 3 if num_nodes is None else num_nodes)
    center = size + 1
    sign = 1 - 2 * bits.astype(np.int64)  # whether an edge keeps its side
    edges = np.empty((count, size + 1, 2, 2), np.int64)  # the second place before the last: from i, from -i
    vertex = np.arange(1, size + 1)
    edges[:, 0] = [[0, 1], [0, -1]]
    edges[:, 1:, 0, 0], edges[:, 1:, 1, 0] = vertex, -vertex
    edges[:, 1:, 0, 1], edges[:, 1:, 1, 1] = sign * (vertex + 1), -sign * (vertex + 1)
    # The side of vertex i on the way to n: every crossed edge behind it changes it.
    sides = np.cumprod(sign[:, ::-1], 1)[:, ::-1]
    paths = np.concatenate([np.zeros((count, 1), np.int64), sides * vertex, np.full((count, 1), size + 1)], 1)
    return graph.rows(edges.reshape(count, -1, 2) + center, paths + center)
