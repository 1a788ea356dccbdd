"""Texts on which next-token or teacherless training fails by construction, parity among them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead.star_graphs.graphs import (
    END,
    PAD,
    DatasetSettingsError,
    GraphError,
    Random,
    Split,
    StarGraph,
    StarGraphError,
    orders,
)
from hf_mech.lookahead.star_graphs.layouts import arrow_table

# ----------------------------------------------------------------------------------------------------------------------
# Parity as a star graph: the reduction of Theorem 5.


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


# ----------------------------------------------------------------------------------------------------------------------
# The distributions of Theorems 3 and 4: sequences whose ideal predictors need no belief state.


@dataclass(frozen=True)
class Counterexample:
    """The uniform distribution over a few sequences.

    Attributes:
        symbols: the symbols in the order of their ids; the end token and the padding follow.
        sequences: all sequences.
    """

    symbols: str
    sequences: tuple[str, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts of all tokens in the order of their ids."""
        return (*self.symbols, END, PAD)

    def rows(self) -> NDArray[np.int64]:
        """Each sequence once with its end token, [sequences, length + 1]."""
        return np.array([[*map(self.symbols.index, text), len(self.symbols)] for text in self.sequences])

    def draw(self, blocks: int, random: Random) -> NDArray[np.int64]:
        """Blocks of all sequences, each block in an order of its own: the shares are exact, not only likely.

        Returns:
            [blocks * sequences, length + 1].
        """
        return self.rows()[orders(random, blocks, len(self.sequences)).reshape(-1)]


COUNTEREXAMPLES = {
    # A state of the next-token predictor that forgets A or B while it predicts C.
    "theorem-3": Counterexample("ABC", ("ACA", "BCB")),
    # A state of the multi-token predictor that forgets D or S, for each later symbol alone is A or B either way.
    "theorem-4": Counterexample("ABDS", ("DAA", "DBB", "SAB", "SBA")),
}


@dataclass(frozen=True)
class CounterexampleSettings:
    """The settings of a data set of such sequences. It has no test split: all that could be tested on is trained on.

    Args:
        name: of one of `COUNTEREXAMPLES`.
        seed: of the order of the rows; 0 or more.
        num_train: the rows, a multiple of the number of sequences: from the first row on, every 2 rows (theorem-3) or 4
            rows (theorem-4) hold each sequence once.

    Raises:
        DatasetSettingsError: a name that is none, a seed or a number of rows out of its range, or rows that do not hold
            all sequences equally often.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train",)
    columns: ClassVar[tuple[str, ...]] = ("input_ids", "labels")
    name: str
    seed: int = 0
    num_train: int = 100_000

    def __post_init__(self) -> None:
        if self.name not in COUNTEREXAMPLES:
            raise DatasetSettingsError(f"name must be one of {', '.join(COUNTEREXAMPLES)}, got {self.name!r}.")
        for name, least in (("seed", 0), ("num_train", 1)):
            check_whole(name, getattr(self, name), least, DatasetSettingsError)
        if self.num_train % self.block:
            raise DatasetSettingsError(
                f"num_train must be a multiple of {self.block}, so that all sequences of {self.name} come equally "
                f"often, got {self.num_train}."
            )

    @property
    def block(self) -> int:
        """The number of sequences."""
        return len(COUNTEREXAMPLES[self.name].sequences)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary."""
        return COUNTEREXAMPLES[self.name].tokens

    @property
    def width(self) -> int:
        """The tokens of a row."""
        return COUNTEREXAMPLES[self.name].rows().shape[1]

    def check(self) -> None:
        """Nothing is left to check."""

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard; every token is trained."""
        for number, blocks in enumerate(tables_of(self.num_train // self.block, shard)):
            dice = Dice(self.seed, (zlib.crc32(self.name.encode()), shard, number))
            rows = COUNTEREXAMPLES[self.name].draw(len(blocks), dice)
            yield arrow_table({"input_ids": rows, "labels": rows}, len(self.tokens))
