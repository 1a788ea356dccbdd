"""The distributions of Theorems 3 and 4: sequences whose ideal predictors need no belief state."""

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
from hf_mech.lookahead.star_graphs.choices import Random, orders
from hf_mech.lookahead.star_graphs.columns import arrow_table
from hf_mech.lookahead.star_graphs.errors import DatasetSettingsError
from hf_mech.lookahead.star_graphs.graphs import END, PAD
from hf_mech.lookahead.star_graphs.splits import Split


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
