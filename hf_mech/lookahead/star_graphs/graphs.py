"""Star graphs G(d, l), d arms of l nodes that share the first: drawn at random or given, and the split of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.data.whole_numbers import check_bool, check_whole
from hf_mech.lookahead import LookaheadError

SEPARATORS = ("|", "=", "/", "$")
END, PAD = "<eos>", "<pad>"
MOST_NODES = 100_000
"""The largest `num_nodes`: to draw a graph takes a random number for every name."""


@dataclass(frozen=True)
class StarGraph:
    """G(d, l): d arms of l nodes each, the common start node included (Section 3.1 of the Belief State Transformer).

    A row is `a b | a b | ... / start goal = n1 ... nl`, each edge from parent to child, the edges shuffled, and the end
    token. Nodes are 0 to `num_nodes` - 1, then come `|`, `=`, `/`, `$`, the end token and the padding: the 56 tokens of
    the paper's code for 50 names. No row of the layout `plain` has padding or `$`.

    Args:
        degree: d, the number of arms.
        length: l, the nodes of a path.
        num_nodes: N, the number of names that nodes are drawn from.
        directed: edges stand from parent to child, as in the paper; False: either way round, each by the toss of a
            coin, so that a chain has to be followed in both directions.

    Raises:
        LookaheadError: numbers below 1 (length: 2), more nodes than names, more than `MOST_NODES` names, or a
            `directed` that is no bool.

    Example:

    ```python
    >>> graph = StarGraph(degree=2, length=3, num_nodes=9)
    >>> " ".join(graph.tokens[i] for i in graph.encode([(1, 5), (3, 1), (3, 0), (0, 7)], start=3, goal=5))
    '1 5 | 3 1 | 3 0 | 0 7 / 3 5 ='

    ```
    """

    degree: int = 2
    length: int = 5
    num_nodes: int = 50
    directed: bool = True

    def __post_init__(self) -> None:
        for name, least in (("degree", 1), ("length", 2), ("num_nodes", 1)):
            check_whole(name, getattr(self, name), least, LookaheadError)
        check_bool("directed", self.directed, LookaheadError)
        if self.num_nodes > MOST_NODES:
            raise LookaheadError(f"num_nodes must be at most {MOST_NODES:,}, got {self.num_nodes}.")
        if self.nodes > self.num_nodes:
            raise LookaheadError(
                f"G({self.degree},{self.length}) has {self.nodes} nodes, more than the {self.num_nodes} names; give "
                "num_nodes of at least that."
            )

    @property
    def nodes(self) -> int:
        """The number of nodes of a graph."""
        return self.degree * (self.length - 1) + 1

    @property
    def edges(self) -> int:
        """The number of edges of a graph."""
        return self.degree * (self.length - 1)

    @property
    def graphs(self) -> int:
        """The number of different graphs, as sets of edges: N! / (N - nodes)! / d!; without directions an arm alone is
        the same from both ends."""
        same = math.factorial(self.degree) if self.directed or self.degree > 1 else 2
        return math.perm(self.num_nodes, self.nodes) // same

    @property
    def prompt_length(self) -> int:
        """The number of tokens of a prompt, which ends with `=`."""
        return 3 * self.edges + 3

    @property
    def row_length(self) -> int:
        """The number of tokens of a row: prompt, path and end token."""
        return self.prompt_length + self.length + 1

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts of all tokens in the order of their ids."""
        return (*map(str, range(self.num_nodes)), *SEPARATORS, END, PAD)

    @property
    def end_token(self) -> int:
        """The id of the end token."""
        return self.num_nodes + 4

    @property
    def pad_token(self) -> int:
        """The id of the padding. It is not the end token, which is trained and must not be masked with the padding."""
        return self.num_nodes + 5

    def draw(self, count: int, generator: Random) -> NDArray[np.int64]:
        """Random graphs: all nodes differ, and all choices are uniform.

        Args:
            count: the number of graphs.
            generator: of all choices; with `Dice` the graphs are the same on every machine and with every version of
                numpy.

        Returns:
            [count, row_length].
        """
        names = orders(generator, count, self.num_nodes)[:, : self.nodes]
        start, arms = names[:, 0], names[:, 1:].reshape(count, self.degree, self.length - 1)
        parents = np.concatenate([np.broadcast_to(start[:, None, None], arms[:, :, :1].shape), arms[:, :, :-1]], 2)
        edges = np.stack([parents, arms], -1).reshape(count, self.edges, 2)
        order = orders(generator, count, self.edges)
        edges = np.take_along_axis(edges, order[:, :, None], 1)
        if not self.directed:
            edges = np.where(below(generator, 2, (count, self.edges, 1)), edges[:, :, ::-1], edges)
        return self.rows(edges, np.concatenate([start[:, None], arms[:, 0]], 1))

    def rows(self, edges: NDArray[np.int64], paths: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of given graphs.

        Args:
            edges: [count, edges, 2], in the order in which they and their two nodes are to stand.
            paths: [count, length], from the start to the goal.

        Returns:
            [count, row_length].
        """
        rows = np.empty((len(edges), self.row_length), np.int64)
        rows[:, : self.prompt_length - 3] = np.pad(
            edges, ((0, 0), (0, 0), (0, 1)), constant_values=self.num_nodes
        ).reshape(len(edges), self.prompt_length - 3)
        # The slash takes the place of the last bar.
        rows[:, self.prompt_length - 4 : self.prompt_length] = self._question(paths[:, 0], paths[:, -1])
        rows[:, self.prompt_length : -1] = paths
        rows[:, -1] = self.end_token
        return rows

    def edges_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The edges of rows or prompts [count, prompt_length or more] in their order, [count, edges, 2]."""
        return rows[:, : 3 * self.edges].reshape(len(rows), self.edges, 3)[:, :, :2]

    def paths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The paths of rows [count, row_length], [count, length]."""
        return rows[:, self.prompt_length : -1]

    def encode(self, edges: Iterable[tuple[int, int]], start: int, goal: int) -> NDArray[np.int64]:
        """The prompt of a graph of one's own, up to and including `=`.

        Args:
            edges: (parent, child) pairs, in the order in which they are to stand; without directions either way round.
            start: the node from which the arms go out.
            goal: any other node; the end of an arm, unless the model was trained with subgoals.

        Returns:
            [prompt_length].

        Raises:
            LookaheadError: a node without a name, edges that are not those of G(d, l), another start than the common
                one, or a goal that is not in the graph.
        """
        pairs = check_star(edges, start, goal, self)
        question = self._question(np.array([start]), np.array([goal]))[0]
        bars = np.full((self.edges, 1), self.num_nodes)
        return np.concatenate([np.concatenate([np.array(pairs), bars], 1).reshape(-1)[:-1], question])

    def _question(self, start: NDArray[np.int64], goal: NDArray[np.int64]) -> NDArray[np.int64]:
        """`/ start goal =`, [count, 4]."""
        return np.stack(
            [np.full_like(start, self.num_nodes + 2), start, goal, np.full_like(start, self.num_nodes + 1)], 1
        )


def sizes_of(name: str) -> tuple[int, int] | None:
    """Degree and length of the graphs `g-D-L`; None for another name. Every graph has one name: `g-03-7` is none."""
    match = re.fullmatch(r"g-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)", name)
    return (int(match[1]), int(match[2])) if match else None


# ----------------------------------------------------------------------------------------------------------------------
# The check of a graph of one's own.


def check_star(edges: Iterable[tuple[int, int]], start: int, goal: int, graph: StarGraph) -> list[tuple[int, int]]:
    """The edges as a list, if they form such a graph around `start`, and `goal` is another of its nodes.

    Raises:
        LookaheadError: they do not, or it is not.
    """
    degree, length, num_nodes = graph.degree, graph.length, graph.num_nodes
    pairs = [_pair(edge, num_nodes) for edge in edges]
    for node in (start, goal):
        _check_node(node, num_nodes)
    shape = f"G({degree},{length})"
    nodes = {node for pair in pairs for node in pair}
    if len(nodes) > num_nodes or len(pairs) != degree * (length - 1):
        raise LookaheadError(
            f"{shape} has {degree * (length - 1)} edges, got {len(pairs)} between {len(nodes)} nodes; give all edges "
            "of the graph, or make the StarGraph with its degree and length."
        )
    if start not in nodes:
        raise LookaheadError(f"The start {start} is not in the graph; its nodes are {sorted(nodes)}.")
    if goal not in nodes or goal == start:
        rest = sorted(nodes - {start})
        raise LookaheadError(f"The goal must be a node of the graph other than the start, one of {rest}, got {goal}.")
    children: dict[int, list[int]] = {}
    for parent, child in pairs if graph.directed else _outward(pairs, start):
        children.setdefault(parent, []).append(child)
    first = children.get(start, [])
    if len(first) != degree:
        raise LookaheadError(f"{shape} has {degree} edges from its start, got {len(first)} from {start}.")
    for node in first:
        arm = [start, node]
        while len(after := children.get(arm[-1], [])) == 1 and len(arm) <= length:
            arm.append(after[0])
        if len(arm) != length or after:
            raise LookaheadError(
                f"The arm {' -> '.join(map(str, arm))} of {shape} must have {length} nodes and no branches; edges go "
                "from parent to child."
            )
    if len(nodes) != degree * (length - 1) + 1:
        raise LookaheadError(f"The arms of {shape} share no node but the start, but {pairs} has {len(nodes)} nodes.")
    return pairs


def _outward(pairs: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """The edges that can be reached from the start, each away from it."""
    reached, left, outward = [start], list(pairs), list[tuple[int, int]]()
    for node in reached:
        there = [(a, b) if a == node else (b, a) for a, b in left if node in (a, b)]
        left = [pair for pair in left if node not in pair]
        outward += there
        reached += [child for _, child in there]
    return outward


def _pair(edge: Any, num_nodes: int) -> tuple[int, int]:
    try:
        parent, child = edge
    except (TypeError, ValueError) as error:
        raise LookaheadError(f"An edge is a pair (parent, child), got {edge!r}.") from error
    _check_node(parent, num_nodes)
    _check_node(child, num_nodes)
    return int(parent), int(child)


def _check_node(node: Any, num_nodes: int) -> None:
    if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < num_nodes:
        raise LookaheadError(
            f"Nodes are whole numbers from 0 to {num_nodes - 1} (num_nodes={num_nodes}), got {node!r}; rename the "
            "nodes, or use a larger num_nodes and a model that was trained with it."
        )


# ----------------------------------------------------------------------------------------------------------------------
# Which split a graph belongs to: a hash of its edges decides, so that no list of graphs has to be kept.


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
    edges = edges if graph.directed else np.sort(edges, -1)
    # A sum does not depend on the order of its terms.
    keys = _mixed(edges[:, :, 0] * np.uint64(graph.num_nodes) + edges[:, :, 1]).sum(1)
    return (_mixed(keys) % np.uint64(PARTS) == 0) == (split == "test")


def check_split(graph: StarGraph, rows: NDArray[np.int64], split: Split) -> None:
    """Raises LookaheadError if the graph of a row [count, prompt_length or more] does not belong to the split."""
    wrong = np.flatnonzero(~in_split(graph, rows, split))
    if len(wrong):
        edges = graph.edges_of(rows[wrong[:1]])[0].tolist()
        raise LookaheadError(
            f"{len(wrong)} of {len(rows)} graphs of the split {split!r} belong to the other split, first the one with "
            f"the edges {edges}. This is an error of the generator; please report it."
        )


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of every word, spread as evenly as random words (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# ----------------------------------------------------------------------------------------------------------------------
# Random choices for many graphs at once, from numpy's generator or from `Dice`, whose numbers never change.


Random = np.random.Generator | Dice


def orders(random: Random, count: int, n: int) -> NDArray[np.int64]:
    """Random orders of 0 to n - 1, [count, n], all equally likely."""
    if isinstance(random, Dice):
        # The index in the lower half makes all keys of a row differ, so every way to sort gives the same order.
        keys = random.words((count, n)) << np.uint64(32) | np.arange(n, dtype=np.uint64)
        keys.sort(axis=1)
        return (keys & np.uint64(0xFFFFFFFF)).view(np.int64)
    return random.random((count, n)).argsort(1)


def below(random: Random, n: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Whole numbers of that shape, uniform in 0 to n - 1."""
    return random.below(n, shape) if isinstance(random, Dice) else random.integers(n, size=shape)
