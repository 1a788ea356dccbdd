"""Batches of examples without a fixed data set: drawn on demand, each a pure function of its arguments."""

from __future__ import annotations

import torch

from hf_mech.languages.layouts import Layout, lay_out
from hf_mech.languages.task import Examples, dice_for
from hf_mech.languages.tasks import task_named


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
        partial_results: label them, too (see `arithmetic/partial_results.py`).

    Returns:
        input_ids, attention_mask and labels, [batch_size, width] int64.

    Raises:
        TaskError: there is no such task, it has no example of these lengths, or a number is out of its range.
        LayoutError: there is no such layout, or partial results of a task without brackets.

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
        TaskError: there is no such task, it has no example of that length, or a number is out of its range.
        LayoutError: there is no such layout.
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
