"""The check of a graph of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hf_mech.lookahead.star_graphs.errors import GraphError


def check_star(
    edges: Iterable[tuple[int, int]], start: int, goal: int, degree: int, length: int, num_nodes: int
) -> list[tuple[int, int]]:
    """The edges as a list, if they are those of G(degree, length) around `start` and have the goal.

    Raises:
        GraphError: they are not.
    """
    pairs = [_pair(edge, num_nodes) for edge in edges]
    for node in (start, goal):
        _check_node(node, num_nodes)
    shape = f"G({degree},{length})"
    nodes = {node for pair in pairs for node in pair}
    if len(nodes) > num_nodes or len(pairs) != degree * (length - 1):
        raise GraphError(
            f"{shape} has {degree * (length - 1)} edges, got {len(pairs)} between {len(nodes)} nodes; give all edges "
            "of the graph, or make the StarGraph with its degree and length."
        )
    if start not in nodes:
        raise GraphError(f"The start {start} is not in the graph; its nodes are {sorted(nodes)}.")
    if goal not in nodes or goal == start:
        rest = sorted(nodes - {start})
        raise GraphError(f"The goal must be a node of the graph other than the start, one of {rest}, got {goal}.")
    children: dict[int, list[int]] = {}
    for parent, child in pairs:
        children.setdefault(parent, []).append(child)
    first = children.get(start, [])
    if len(first) != degree:
        raise GraphError(f"{shape} has {degree} edges from its start, got {len(first)} from {start}.")
    for node in first:
        arm = [start, node]
        while len(after := children.get(arm[-1], [])) == 1 and len(arm) <= length:
            arm.append(after[0])
        if len(arm) != length or after:
            raise GraphError(
                f"The arm {' -> '.join(map(str, arm))} of {shape} must have {length} nodes and no branches; edges go "
                "from parent to child."
            )
    if len(nodes) != degree * (length - 1) + 1:
        raise GraphError(f"The arms of {shape} share no node but the start, but {pairs} has {len(nodes)} nodes.")
    return pairs


def _pair(edge: Any, num_nodes: int) -> tuple[int, int]:
    try:
        parent, child = edge
    except (TypeError, ValueError) as error:
        raise GraphError(f"An edge is a pair (parent, child), got {edge!r}.") from error
    _check_node(parent, num_nodes)
    _check_node(child, num_nodes)
    return int(parent), int(child)


def _check_node(node: Any, num_nodes: int) -> None:
    if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < num_nodes:
        raise GraphError(
            f"Nodes are whole numbers from 0 to {num_nodes - 1} (num_nodes={num_nodes}), got {node!r}; rename the "
            "nodes, or use a larger num_nodes and a model that was trained with it."
        )
