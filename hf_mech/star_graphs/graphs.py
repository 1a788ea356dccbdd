"""Random star graphs as rows of tokens, any number at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


class StarGraphError(ValueError):
    """Numbers that make no star graph."""


@dataclass(frozen=True)
class StarGraph:
    """G(d, l): d arms of l nodes each, the common start node included (Section 3.1 of the Belief State Transformer).

    A row is `a b | a b | ... / start goal = n1 ... nl`, each edge from parent to child, the edges shuffled, and the end
    token. Nodes are 0 to `num_nodes` - 1, then come `|`, `=`, `/`, `$`, the end token, and one token without a use: the
    vocabulary of the paper's code.

    Args:
        degree: d, the number of arms.
        length: l, the nodes of a path.
        num_nodes: N, the number of names that nodes are drawn from.

    Raises:
        StarGraphError: numbers below 1 (length: 2), or more nodes than names.
    """

    degree: int = 2
    length: int = 5
    num_nodes: int = 50

    def __post_init__(self) -> None:
        for name, least in (("degree", 1), ("length", 2), ("num_nodes", 1)):
            if getattr(self, name) < least:
                raise StarGraphError(f"{name} must be at least {least}, got {getattr(self, name)}.")
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
        return (*map(str, range(self.num_nodes)), "|", "=", "/", "$", "<eos>", "<unused>")

    @property
    def end_token(self) -> int:
        """The id of the end token."""
        return self.num_nodes + 4

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Random graphs.

        Args:
            count: the number of graphs.
            generator: of all choices.

        Returns:
            [count, row_length].
        """
        names = generator.random((count, self.num_nodes)).argsort(1)[:, : self.nodes]
        start, arms = names[:, :1], names[:, 1:].reshape(count, self.degree, self.length - 1)
        parents = np.concatenate([np.repeat(start[:, None], self.degree, 1), arms[:, :, :-1]], 2)
        edges = np.stack([parents, arms, np.full_like(arms, self.num_nodes)], -1).reshape(count, self.edges, 3)
        order = generator.random((count, self.edges)).argsort(1)
        edges = np.take_along_axis(edges, order[:, :, None], 1).reshape(count, -1)[:, :-1]

        def column(token: int) -> NDArray[np.int64]:
            return np.full((count, 1), token)

        bar = self.num_nodes
        path = np.concatenate([start, arms[:, 0]], 1)
        parts = (edges, column(bar + 2), start, path[:, -1:], column(bar + 1), path, column(self.end_token))
        return np.concatenate(parts, 1)
