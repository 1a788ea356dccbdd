"""From tasks and rows to padded batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.languages.rows import IGNORED, Layout, check_bracketed, check_layout, lay_out, vocabulary
from hf_mech.languages.task import Examples, LanguagesError, Task, dice_for
from hf_mech.languages.tasks import TASKS, task_named

# ----------------------------------------------------------------------------------------------------------------------
# From rows of the dataset `hf_mech/formal_languages` to padded batches.


@dataclass
class DataCollatorForFormalLanguages:
    """Lays rows out as `mlm` or `alm` and pads them to the longest, on the tokenizer's padding side.

    Rows have `inputs` and `outputs`, indices of the task's symbols as in the dataset, and optionally `scored`: without
    it, every output counts. Other columns are ignored.

    Args:
        tokenizer: from `formal_language_tokenizer`, or one of these saved and loaded; it holds its task.
        layout: `mlm` (`[BOS] x [MASK]...[MASK]`) or `alm` (`[BOS] x [SEP] y`).
        partial_results: label them, too (see `rows.py`); of the tasks in `BRACKETED`.

    Raises:
        LanguagesError: there is no such layout, the tokenizer is not a formal language's, or partial results of a task
            without brackets.

    Example:

    ```python
    >>> from hf_mech.languages import formal_language_tokenizer
    >>> collate = DataCollatorForFormalLanguages(formal_language_tokenizer("reverse_string"))
    >>> batch = collate([{"inputs": [0, 1], "outputs": [1, 0]}, {"inputs": [1], "outputs": [1]}])
    >>> batch["input_ids"].tolist(), batch["labels"].tolist()
    ([[0, 4, 5, 3, 3], [0, 5, 3, 1, 1]], [[-100, -100, -100, 5, 4], [-100, -100, 5, -100, -100]])

    ```
    """

    tokenizer: PreTrainedTokenizerFast
    layout: Layout = "mlm"
    partial_results: bool = False

    def __post_init__(self) -> None:
        check_layout(self.layout)
        name = self.tokenizer.init_kwargs.get("task")
        if name not in TASKS or self.tokenizer.get_vocab() != vocabulary(name):
            raise LanguagesError(
                f"The tokenizer must be one of a formal language, got one with task {name!r} and "
                f"{len(self.tokenizer)} tokens; make it with formal_language_tokenizer(task_name)."
            )
        if self.partial_results:
            check_bracketed(name)

    @cached_property
    def task(self) -> Task:
        """The task that the tokenizer was made for."""
        return TASKS[self.tokenizer.init_kwargs["task"]]

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        """input_ids, attention_mask and labels, [rows, width] int64.

        Raises:
            LanguagesError: no rows, a row without its columns, an index of no symbol, or `scored` of another length
                than `outputs`.
        """
        if not rows:
            raise LanguagesError("The collator got no rows; give it at least one.")
        laid_out = [
            lay_out(self.task.name, self.layout, self._examples(row), partial_results=self.partial_results)
            for row in rows
        ]
        input_ids = self._padded([ids for ids, _ in laid_out], self.tokenizer.pad_token_id)
        return {
            "input_ids": input_ids,
            "attention_mask": self._padded([np.ones_like(ids) for ids, _ in laid_out], 0),
            "labels": self._padded([labels for _, labels in laid_out], IGNORED),
        }

    def _padded(self, rows: list[NDArray[np.int64]], value: int) -> torch.Tensor:
        sequences = [torch.from_numpy(row[0]) for row in rows]
        return pad_sequence(sequences, batch_first=True, padding_value=value, padding_side=self.tokenizer.padding_side)

    def _examples(self, row: Mapping[str, Any]) -> Examples:
        inputs = self._indices(row, "inputs", self.task.inputs)
        outputs = self._indices(row, "outputs", self.task.outputs)
        scored = np.asarray(row.get("scored", np.ones(outputs.shape[1], bool)), bool)[None]
        if scored.shape != outputs.shape:
            raise LanguagesError(
                f"A row's scored must have one entry for each of its {outputs.shape[1]} outputs, got {scored.shape[1]}."
            )
        return Examples(inputs, outputs, scored)

    def _indices(self, row: Mapping[str, Any], column: str, symbols: tuple[str, ...]) -> NDArray[np.int64]:
        if column not in row:
            raise LanguagesError(
                f"A row must have the columns inputs and outputs, got {', '.join(row) or 'none'}; a Trainer needs "
                "remove_unused_columns=False to keep them."
            )
        indices = np.asarray(row[column], np.int64)[None]
        if ((indices < 0) | (indices >= len(symbols))).any():
            raise LanguagesError(
                f"The {column} of task {self.task.name!r} are indices into its {len(symbols)} symbols, 0 to "
                f"{len(symbols) - 1}, got {indices[0].tolist()}; is the tokenizer that of another task?"
            )
        return indices


# ----------------------------------------------------------------------------------------------------------------------
# Batches of examples without a fixed data set: drawn on demand, each a pure function of its arguments.


def fresh_batch(
    task_name: str,
    layout: Layout,
    *,
    seed: int,
    step: int,
    batch_size: int,
    max_length: int = 40,
    partial_results: bool = False,
) -> dict[str, torch.Tensor]:
    """The training batch of one step: one length, uniform among the task's lengths up to `max_length`.

    Args:
        task_name: one of `TASKS`.
        layout: `mlm` or `alm`; both have the same examples.
        seed: of the run.
        step: of the run; every step has its own batch.
        batch_size: examples.
        max_length: the longest input.
        partial_results: label them, too (see `rows.py`).

    Returns:
        input_ids, attention_mask and labels, [batch_size, width] int64.

    Raises:
        LanguagesError: there is no such task or layout, the task has no example of these lengths, a number is out of
            its range, or partial results of a task without brackets.

    Example:

    ```python
    >>> batch = fresh_batch("reverse_string", "mlm", seed=0, step=0, batch_size=2, max_length=4)
    >>> batch["input_ids"].tolist()
    [[0, 4, 4, 5, 3, 3, 3], [0, 5, 4, 5, 3, 3, 3]]
    >>> batch["labels"].tolist()
    [[-100, -100, -100, -100, 5, 4, 4], [-100, -100, -100, -100, 5, 4, 5]]

    ```
    """
    task, dice = task_named(task_name), dice_for(task_name, "fresh", seed, step)
    lengths = task.lengths(1, max_length)
    length = lengths[int(dice.below(len(lengths), (1,))[0])]
    return _tensors(task_name, layout, task.sample(dice, length, batch_size), partial_results)


def test_batch(task_name: str, layout: Layout, *, seed: int, length: int, count: int) -> dict[str, torch.Tensor]:
    """Examples of one length for evaluation; their random numbers differ from those of all training batches.

    Args:
        task_name: one of `TASKS`.
        layout: `mlm` or `alm`; both have the same examples.
        seed: of the examples.
        length: of the inputs, in symbols.
        count: examples.

    Returns:
        input_ids, attention_mask and labels, [count, width] int64.

    Raises:
        LanguagesError: there is no such task or layout, the task has no example of that length, or a number is out of
            its range.
    """
    task = task_named(task_name)
    task.lengths(length, length)
    return _tensors(task_name, layout, task.sample(dice_for(task_name, "evaluation", seed, length), length, count))


test_batch.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test otherwise


def _tensors(
    task_name: str, layout: Layout, examples: Examples, partial_results: bool = False
) -> dict[str, torch.Tensor]:
    laid_out = lay_out(task_name, layout, examples, partial_results=partial_results)
    input_ids, labels = (torch.from_numpy(part) for part in laid_out)
    return {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids), "labels": labels}
