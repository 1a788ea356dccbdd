"""The rows of a data set of one task: short inputs for training, longer ones for testing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.languages.errors import DatasetSettingsError
from hf_mech.languages.task import Task, dice_for

Split = Literal["train", "test"]


@dataclass(frozen=True)
class FormalLanguageSettings:
    """The settings of a data set; the default lengths are the paper's.

    Args:
        seed: of all examples; 0 or more.
        num_train: training examples; their lengths are uniform among the task's lengths up to `max_train_length`. There
            are few short strings, so they repeat.
        num_test: test examples; they cycle through the task's lengths from `max_train_length + 1` to `max_test_length`,
            so each length has the same number (by default 512 for 60 lengths).
        max_train_length: the longest training input. Test inputs are longer, so no example is in both splits.
        max_test_length: the longest test input.

    Raises:
        DatasetSettingsError: a number out of its range, or no length left to test on.
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 30_720
    max_train_length: int = 40
    max_test_length: int = 100

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 1, "max_test_length": 2}
        for name, low in least.items():
            check_whole(name, getattr(self, name), low, DatasetSettingsError)
        if self.max_test_length <= self.max_train_length:
            raise DatasetSettingsError(
                "Test inputs are longer than all training inputs, so max_test_length must be above max_train_length, "
                f"got {self.max_test_length} and {self.max_train_length}."
            )

    def rows(self, split: Split) -> int:
        """The number of examples of the split."""
        return self.num_train if split == "train" else self.num_test

    def lengths(self, task: Task, split: Split) -> Sequence[int]:
        """The lengths of the split's inputs. Raises TaskError: the task has none in that range."""
        if split == "train":
            return task.lengths(1, self.max_train_length)
        return task.lengths(self.max_train_length + 1, self.max_test_length)


def generate_rows(task: Task, settings: FormalLanguageSettings, split: Split, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        TaskError: the task has no example of the split's lengths.
    """
    lengths = np.asarray(settings.lengths(task, split))
    dice = dice_for(task.name, split, settings.seed, shard)
    for table in tables_of(settings.rows(split), shard):
        rows = np.asarray(table)
        chosen = dice.below(len(lengths), rows.shape) if split == "train" else rows % len(lengths)
        order = np.argsort(chosen, kind="stable")
        drawn = [
            _table(*task.sample(dice, int(lengths[index]), int(count)))
            for index, count in zip(*np.unique(chosen, return_counts=True), strict=True)
        ]
        yield pa.concat_tables(drawn).take(np.argsort(order, kind="stable"))


def _table(inputs: NDArray[np.int64], outputs: NDArray[np.int64], scored: NDArray[np.bool_]) -> pa.Table:
    return pa.table({"inputs": _lists(inputs), "outputs": _lists(outputs), "scored": _lists(scored)})


def _lists(rows: NDArray[Any]) -> pa.ListArray:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.reshape(-1)))
