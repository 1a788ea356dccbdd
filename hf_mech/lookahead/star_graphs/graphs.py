"""Random star graphs as rows of tokens, any number at once, and the prompt of a graph of one's own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead.star_graphs.choices import Random, orders
from hf_mech.lookahead.star_graphs.errors import StarGraphError
from hf_mech.lookahead.star_graphs.own_graphs import check_star

SEPARATORS = ("|", "=", "/", "$")
END, PAD = "<eos>", "<pad>"
MOST_NODES = 100_000
"""The most names: each graph takes a number for every name."""


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

    Raises:
        StarGraphError: numbers below 1 (length: 2), more nodes than names, or more than `MOST_NODES` names.

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

    def __post_init__(self) -> None:
        for name, least in (("degree", 1), ("length", 2), ("num_nodes", 1)):
            check_whole(name, getattr(self, name), least, StarGraphError)
        if self.num_nodes > MOST_NODES:
            raise StarGraphError(f"num_nodes must be at most {MOST_NODES:,}, got {self.num_nodes}.")
        if self.nodes > self.num_nodes:
            raise StarGraphError(
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
        """The number of different graphs, as sets of edges: N! / (N - nodes)! / d!."""
        return math.perm(self.num_nodes, self.nodes) // math.factorial(self.degree)

    @property
    def prompt_length(self) -> int:
        """The tokens up to and with `=`."""
        return 3 * self.edges + 3

    @property
    def row_length(self) -> int:
        """The tokens of a row with its end token."""
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
            generator: of all choices; with `Dice` the graphs are the same on every machine and
                with every version of numpy.

        Returns:
            [count, row_length].
        """
        names = orders(generator, count, self.num_nodes)[:, : self.nodes]
        start, arms = names[:, 0], names[:, 1:].reshape(count, self.degree, self.length - 1)
        parents = np.concatenate([np.broadcast_to(start[:, None, None], arms[:, :, :1].shape), arms[:, :, :-1]], 2)
        edges = np.stack([parents, arms], -1).reshape(count, self.edges, 2)
        order = orders(generator, count, self.edges)
        edges = np.take_along_axis(edges, order[:, :, None], 1)
        return self.rows(edges, np.concatenate([start[:, None], arms[:, 0]], 1))

    def rows(self, edges: NDArray[np.int64], paths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Edges in their order and paths as rows.

        Args:
            edges: [count, edges, 2], parent and child.
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
        """The prompt of a graph of one's own, up to and with `=`.

        Args:
            edges: (parent, child) pairs, in the order in which they are to stand.
            start: the node from which the arms go out.
            goal: any other node; the end of an arm, unless the model was trained with subgoals.

        Returns:
            [prompt_length].

        Raises:
            GraphError: a node without a name, edges that are not those of G(d, l), another start than the common one,
                or a goal that is not in the graph.
        """
        pairs = check_star(edges, start, goal, self.degree, self.length, self.num_nodes)
        question = self._question(np.array([start]), np.array([goal]))[0]
        bars = np.full((self.edges, 1), self.num_nodes)
        return np.concatenate([np.concatenate([np.array(pairs), bars], 1).reshape(-1)[:-1], question])

    def _question(self, start: NDArray[np.int64], goal: NDArray[np.int64]) -> NDArray[np.int64]:
        """`/ start goal =`, [count, 4]."""
        return np.stack(
            [np.full_like(start, self.num_nodes + 2), start, goal, np.full_like(start, self.num_nodes + 1)], 1
        )
