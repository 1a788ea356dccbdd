"""Tasks laid out as rows of token ids, for masked and causal models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.languages.partial_results import partial_results as results_of
from hf_mech.languages.task import DatasetSettingsError, Examples, LayoutError, Task, dice_for
from hf_mech.languages.tasks import task_named
from hf_mech.languages.tokenizer import BOS, MASK, SEP, SPECIAL_TOKENS, vocabulary

# ----------------------------------------------------------------------------------------------------------------------
# The layouts: how an input and its output become one row of tokens.
#
# `mlm`: `[BOS] x [MASK]...[MASK]`, a mask for every output symbol, with its label at the mask.
# `alm`: `[BOS] x [SEP] y`, the labels of y at y itself: causal models shift them.
#
# Partial results are labels besides: at the symbols where they are known, in `alm` one place later.


Layout = Literal["mlm", "alm"]
IGNORED = -100  # the label of a position that the loss leaves out


def check_layout(layout: str) -> None:
    """Raises LayoutError: there is no such layout."""
    if layout not in get_args(Layout):
        raise LayoutError(f"layout must be one of {', '.join(get_args(Layout))}, got {layout!r}.")


def lay_out(
    task_name: str, layout: Layout, examples: Examples, *, partial_results: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Examples of one length as (input_ids, labels), both [count, width]; labels are -100 at positions without a score.

    Raises:
        TaskError: there is no such task.
        LayoutError: there is no such layout, or partial results of a task without brackets.
    """
    check_layout(layout)
    input_tokens, output_tokens = _token_ids(task_name)
    count = len(examples.inputs)
    x, y = input_tokens[examples.inputs], output_tokens[examples.outputs]
    head = [np.full((count, 1), SPECIAL_TOKENS.index(BOS)), x]
    if layout == "mlm":
        parts = [*head, np.full(y.shape, SPECIAL_TOKENS.index(MASK))]
    else:
        parts = [*head, np.full((count, 1), SPECIAL_TOKENS.index(SEP)), y]
    input_ids = np.concatenate(parts, axis=1)
    labels = np.full(input_ids.shape, IGNORED)
    labels[:, input_ids.shape[1] - y.shape[1] :] = np.where(examples.scored, y, IGNORED)
    if partial_results:
        results, first = results_of(task_name, examples.inputs), 1 if layout == "mlm" else 2
        for symbol in np.unique(results[results != ""]):
            labels[:, first : first + results.shape[1]][results == symbol] = vocabulary(task_name)[symbol]
    return input_ids, labels


@cache
def _token_ids(task_name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index to token id, of the inputs and of the outputs."""
    ids, task = vocabulary(task_name), task_named(task_name)
    return np.array([ids[s] for s in task.inputs]), np.array([ids[s] for s in task.outputs])


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a data set of one task: short inputs for training, longer ones for testing.


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
