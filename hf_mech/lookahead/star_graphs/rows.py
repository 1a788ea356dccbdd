"""The data sets: random star graphs, parity, and the counterexamples; the same rows with any number of processes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.data.shards import ROWS_AT_A_TIME, tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs.graphs import (
    END,
    PAD,
    Random,
    Split,
    StarGraph,
    check_split,
    in_split,
    orders,
    share_of,
)
from hf_mech.lookahead.star_graphs.layouts import Layout, arrow_table, check_layout, lay_out, width_of

# ----------------------------------------------------------------------------------------------------------------------
# Parity as a star graph: the reduction of Theorem 5.


def parity_graph(bits: int, num_nodes: int) -> StarGraph:
    """The star graphs of strings of so many bits: two arms with a node for each bit, one more, and the start.

    The proof has n bits and vertices up to n, but only n - 1 bits decide on an edge; k bits need n = k + 1.

    Raises:
        LookaheadError: fewer than 1 bit, or too few names.
    """
    check_whole("bits", bits, 1, LookaheadError)
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
        LookaheadError: other numbers than 0 and 1; strings without a bit, or too few names.

    Example:

    ```python
    >>> " ".join(parity_graph(1, 5).tokens[i] for i in parity_rows(np.array([[1]]))[0])
    '2 3 | 2 1 | 3 0 | 1 4 / 2 4 = 2 1 4 <eos>'

    ```
    """
    if bits.ndim != 2 or not np.isin(bits, (0, 1)).all():
        raise LookaheadError(f"bits must be an array [count, bits] of 0 and 1, got one of shape {list(bits.shape)}.")
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
# Random star graphs.


_STREAM = zlib.crc32(b"star_graph")
_NUMBERS = 2**26  # in memory for one draw: one for each graph and name
_VAIN_DRAWS = 100  # as many draws without a graph of the split, and the split has none


@dataclass(frozen=True)
class StarGraphSettings:
    """The settings of a data set of star graphs.

    Args:
        seed: of all choices; 0 or more.
        num_train: training graphs; the paper has 8 million.
        num_test: test graphs; the paper has 10,000.
        degree, length, num_nodes, directed: see [`StarGraph`].
        layout: of the training rows, see `hf_mech.lookahead.star_graphs.layouts`. Test rows stand as at inference.
        parity: draw strings of `length - 2` random bits, and make the graphs of Theorem 5 of them.

    Raises:
        LookaheadError: a seed or a number of graphs out of its range, or more graphs than there are; numbers that make
            no star graph; no such layout, or no subgoal for it.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train", "test")
    seed: int = 0
    num_train: int = 100_000
    num_test: int = 10_000
    degree: int = 2
    length: int = 5
    num_nodes: int = 50
    directed: bool = True
    layout: Layout = "plain"
    parity: bool = False
    graph: StarGraph = field(init=False)

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_test", 1)):
            check_whole(name, getattr(self, name), least, LookaheadError)
        if self.parity and not self.directed:
            raise LookaheadError("The graphs of Theorem 5 are directed; leave directed=False out.")
        if self.parity:
            graph = parity_graph(self.length - 2, self.num_nodes)
        else:
            graph = StarGraph(self.degree, self.length, self.num_nodes, self.directed)
        object.__setattr__(self, "graph", graph)
        check_layout(graph, self.layout)
        for split in self.SPLITS:
            part, parts = share_of(split)
            if self.rows(split) > self.graphs * part // parts:
                raise LookaheadError(
                    f"num_{split} must be at most {self.graphs * part // parts}, got {self.rows(split)}: there are "
                    f"{self.graphs} graphs in all, and about {part} of {parts} belong to {split!r}; ask for fewer, or "
                    f"{'more bits' if self.parity else 'a larger num_nodes'}."
                )

    @property
    def graphs(self) -> int:
        """The number of different graphs of both splits together."""
        return 2 ** (self.length - 2) if self.parity else self.graph.graphs

    @property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary."""
        return self.graph.tokens

    @property
    def width(self) -> int:
        """The tokens of a row."""
        return width_of(self.graph, self.layout)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        row = parity_rows(np.zeros((1, self.length - 2), np.int64), self.num_nodes) if self.parity else None
        row = self.graph.draw(1, Dice(0)) if row is None else row
        return tuple(lay_out(self.graph, self.layout, row))

    def rows(self, split: Split) -> int:
        """The number of graphs of the split."""
        return self.num_train if split == "train" else self.num_test

    def check(self) -> None:
        """Raises LookaheadError: no graph belongs to a split. Only a handful of graphs may be so unlucky."""
        for split in self.SPLITS:
            self._drawn(split, 1, self._dice(split, 0, 0))

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard.

        Raises:
            LookaheadError: a graph does not belong to the split.
        """
        for number, table in enumerate(tables_of(self.rows(split), shard)):
            dice = self._dice(split, shard, number)
            rows = self._drawn(split, len(table), dice)
            # The graphs are drawn first, so all layouts have the same ones.
            laid_out = lay_out(self.graph, self.layout, rows, dice if split == "train" else None)
            check_split(self.graph, laid_out["input_ids"], split)
            yield arrow_table(laid_out, len(self.tokens))

    def _dice(self, split: Split, shard: int, table: int) -> Dice:
        kind = (int(self.parity), self.degree, self.length, self.num_nodes)
        return Dice(self.seed, (_STREAM, *kind, self.SPLITS.index(split), shard, table))

    def _drawn(self, split: Split, count: int, dice: Dice) -> NDArray[np.int64]:
        """Graphs of the split, [count, row_length]: those of the other one are drawn again."""
        part, parts = share_of(split)
        kept: list[NDArray[np.int64]] = []
        missing, vain = count, 0
        while missing > 0:
            most = min(ROWS_AT_A_TIME, max(1, _NUMBERS // self.num_nodes))
            rows = self._any(min(missing * parts // part + parts, most), dice)
            kept.append(rows[in_split(self.graph, rows, split)][:missing])
            missing -= len(kept[-1])
            vain = 0 if len(kept[-1]) else vain + 1
            if vain == _VAIN_DRAWS:
                raise LookaheadError(
                    f"None of the {self.graphs} graphs belongs to {split!r}; take "
                    f"{'more bits' if self.parity else 'a larger num_nodes'}."
                )
        return np.concatenate(kept)

    def _any(self, count: int, dice: Dice) -> NDArray[np.int64]:
        if self.parity:
            return parity_rows(dice.below(2, (count, self.length - 2)), self.num_nodes)
        return self.graph.draw(count, dice)


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
        LookaheadError: a name that is none, a seed or a number of rows out of its range, or rows that do not hold all
            sequences equally often.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train",)
    columns: ClassVar[tuple[str, ...]] = ("input_ids", "labels")
    name: str
    seed: int = 0
    num_train: int = 100_000

    def __post_init__(self) -> None:
        if self.name not in COUNTEREXAMPLES:
            raise LookaheadError(f"name must be one of {', '.join(COUNTEREXAMPLES)}, got {self.name!r}.")
        for name, least in (("seed", 0), ("num_train", 1)):
            check_whole(name, getattr(self, name), least, LookaheadError)
        if self.num_train % self.block:
            raise LookaheadError(
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
