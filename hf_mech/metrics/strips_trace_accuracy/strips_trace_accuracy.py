"""The share of action traces classified correctly at every position (STRIPS Transformer paper, "Experiments")."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import NDArray

_DESCRIPTION = """
The share of traces for which every action is classified correctly: predicted 1 where it is inapplicable and 0 where it
is applicable. Positions whose reference is -100 are padding and do not count.
"""

_INPUTS = """
Args:
    predictions: for every trace a list with 0 or 1 for each position; anything at padded positions.
    references: the same with the true labels, and -100 at padded positions. A prediction may be longer or shorter than
        its reference only where the latter is padding.
Returns:
    trace_accuracy: the share of traces that are right at every position.
    positive_accuracy: the same among traces without an inapplicable action; None if there are none.
    negative_accuracy: the same among the others; None if there are none.
    position_accuracy: the share of positions that are right.
Examples:
    >>> from hf_mech.metrics import load
    >>> metric = load("strips_trace_accuracy")
    >>> found = metric.compute(predictions=[[0, 0, 1], [0, 1, 0]], references=[[0, 0, 1], [0, 0, -100]])
    >>> found["trace_accuracy"]
    0.5
"""

PADDING = -100

Array = Any
"""A numpy array or a torch tensor: the methods used here exist in both, so this file does not import torch."""


class StripsTraceAccuracy(evaluate.Metric):
    """Batches of different padded length may be added; the label of a position is 0 or 1."""

    def _info(self) -> evaluate.MetricInfo:
        labels = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": labels, "references": labels}),
        )

    def _compute(self, predictions: list[list[int]], references: list[list[int]]) -> dict[str, float | None]:
        for number, (predicted, expected) in enumerate(zip(predictions, references, strict=True)):
            _check(predicted, expected, number)
        width = max(map(len, (*predictions, *references)), default=0)
        predicted_labels, true_labels = _padded(predictions, width), _padded(references, width)
        right = traces_right(predicted_labels, true_labels)
        negative = (true_labels == 1).any(1)
        return {
            "trace_accuracy": _mean(right),
            "positive_accuracy": _mean(right[~negative]),
            "negative_accuracy": _mean(right[negative]),
            "position_accuracy": _mean((predicted_labels == true_labels)[true_labels != PADDING]),
        }


def traces_right(predictions: Array, references: Array) -> Array:
    """True for traces that are classified correctly at every position, on the labels' device.

    Args:
        predictions: 0 and 1, or booleans; an array or tensor [traces, length], or [traces, length, members] for
            several models at once; any values at padded positions.
        references: the true labels [traces, length], of the same kind; -100 at padded positions, which do not count.

    Returns:
        Booleans [traces], or [traces, members]. A trace with only padding is right.

    Raises:
        ValueError: the shapes do not fit.

    Example:

    ```python
    >>> traces_right(np.array([[0, 0, 1], [0, 1, 0]]), np.array([[0, 0, 1], [0, 0, -100]])).tolist()
    [True, False]

    ```
    """
    if references.ndim != 2 or predictions.ndim not in (2, 3) or predictions.shape[:2] != references.shape:
        raise ValueError(
            "Expected references [traces, length], and predictions of that shape or [traces, length, members]; got "
            f"{tuple(references.shape)} and {tuple(predictions.shape)}."
        )
    if predictions.ndim == 3:
        references = references[..., None]
    return ((predictions == references) | (references == PADDING)).all(1)


def _check(predicted: list[int], expected: list[int], number: int) -> None:
    """Raises ValueError for invalid or missing labels."""
    counted = [i for i, label in enumerate(expected) if label != PADDING]
    if not counted:
        raise ValueError(f"Trace {number} has no labelled position; give 0 or 1 for at least one, not only {PADDING}.")
    if len(predicted) <= counted[-1]:
        raise ValueError(
            f"Trace {number} has {len(predicted)} predictions, but a label at position {counted[-1]}; predict every "
            "position that is labelled."
        )
    for kind, values in (("prediction", predicted), ("reference", expected)):
        odd = sorted({int(values[i]) for i in counted} - {0, 1})
        if odd:
            raise ValueError(f"Trace {number} has a {kind} {odd[0]}; expected 0 (applicable) or 1 (inapplicable).")


def _padded(rows: list[list[int]], width: int) -> NDArray[np.int64]:
    out = np.full((len(rows), width), PADDING, np.int64)
    for row, labels in zip(out, rows, strict=True):
        row[: len(labels)] = labels
    return out


def _mean(values: NDArray[np.bool_]) -> float | None:
    return int(values.sum()) / values.size if values.size else None
