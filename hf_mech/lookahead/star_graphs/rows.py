"""The rows of a data set of star graphs, the same on every machine and with any number of processes."""

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
from hf_mech.lookahead.star_graphs.counterexamples import parity_graph, parity_rows
from hf_mech.lookahead.star_graphs.graphs import DatasetSettingsError, Split, StarGraph, check_split, in_split, share_of
from hf_mech.lookahead.star_graphs.layouts import Layout, arrow_table, check_layout, lay_out, width_of

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
        degree, length, num_nodes: see [`StarGraph`].
        layout: of the training rows, see `hf_mech.lookahead.star_graphs.layouts`. Test rows stand as at inference.
        parity: draw strings of `length - 2` random bits, and make the graphs of Theorem 5 of them.

    Raises:
        DatasetSettingsError: a seed or a number of graphs out of its range, or more graphs than there are.
        StarGraphError: numbers that make no star graph.
        LayoutError: no such layout, or no subgoal for it.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train", "test")
    seed: int = 0
    num_train: int = 100_000
    num_test: int = 10_000
    degree: int = 2
    length: int = 5
    num_nodes: int = 50
    layout: Layout = "plain"
    parity: bool = False
    graph: StarGraph = field(init=False)

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_test", 1)):
            check_whole(name, getattr(self, name), least, DatasetSettingsError)
        if self.parity:
            graph = parity_graph(self.length - 2, self.num_nodes)
        else:
            graph = StarGraph(self.degree, self.length, self.num_nodes)
        object.__setattr__(self, "graph", graph)
        check_layout(graph, self.layout)
        for split in self.SPLITS:
            part, parts = share_of(split)
            if self.rows(split) > self.graphs * part // parts:
                raise DatasetSettingsError(
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
        """Raises DatasetSettingsError: no graph belongs to a split. Only a handful of graphs may be so unlucky."""
        for split in self.SPLITS:
            self._drawn(split, 1, self._dice(split, 0, 0))

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard.

        Raises:
            SplitError: a graph does not belong to the split.
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
                raise DatasetSettingsError(
                    f"None of the {self.graphs} graphs belongs to {split!r}; take "
                    f"{'more bits' if self.parity else 'a larger num_nodes'}."
                )
        return np.concatenate(kept)

    def _any(self, count: int, dice: Dice) -> NDArray[np.int64]:
        if self.parity:
            return parity_rows(dice.below(2, (count, self.length - 2)), self.num_nodes)
        return self.graph.draw(count, dice)
