"""How many action traces are classified correctly at every position (STRIPS Transformer paper, "Experiments")."""

from __future__ import annotations

import datasets
import evaluate

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

_PADDING = -100


class StripsTraceAccuracy(evaluate.Metric):
    """Batches of different padded length may be added; what is asked of a position is a 0 or a 1."""

    def _info(self) -> evaluate.MetricInfo:
        labels = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": labels, "references": labels}),
        )

    def _compute(self, predictions: list[list[int]], references: list[list[int]]) -> dict[str, float | None]:
        right: dict[str, list[bool]] = {"positive": [], "negative": []}
        positions: list[bool] = []
        for number, (predicted, expected) in enumerate(zip(predictions, references, strict=True)):
            scored = _scored(predicted, expected, number)
            positions += scored
            right["negative" if 1 in expected else "positive"].append(all(scored))
        return {
            "trace_accuracy": _mean(right["positive"] + right["negative"]),
            "positive_accuracy": _mean(right["positive"]),
            "negative_accuracy": _mean(right["negative"]),
            "position_accuracy": _mean(positions),
        }


def _scored(predicted: list[int], expected: list[int], number: int) -> list[bool]:
    """Right or wrong for each position that counts. Raises ValueError for what is not a label, or is missing."""
    counted = [i for i, label in enumerate(expected) if label != _PADDING]
    if not counted:
        raise ValueError(f"Trace {number} has no labelled position; give 0 or 1 for at least one, not only {_PADDING}.")
    if len(predicted) <= counted[-1]:
        raise ValueError(
            f"Trace {number} has {len(predicted)} predictions, but a label at position {counted[-1]}; predict every "
            "position that is labelled."
        )
    for kind, values in (("prediction", predicted), ("reference", expected)):
        odd = sorted({int(values[i]) for i in counted} - {0, 1})
        if odd:
            raise ValueError(f"Trace {number} has a {kind} {odd[0]}; expected 0 (applicable) or 1 (inapplicable).")
    return [predicted[i] == expected[i] for i in counted]


def _mean(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
