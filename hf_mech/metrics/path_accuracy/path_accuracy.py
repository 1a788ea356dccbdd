"""The share of paths that are right at every node (Belief State Transformer, Section 3.4)."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

_DESCRIPTION = """
The share of generated paths that are the true path, from the first node to the last.
"""

_INPUTS = """
Args:
    predictions: for every graph the tokens of the generated path. One that is shorter or longer than its reference is
        wrong: cut what was generated at the length of the path.
    references: for every graph the tokens of the true path, 0 or more, without the end token.
Returns:
    path_accuracy: the share of graphs whose whole path is right.
    node_accuracy: the share of the references' nodes that stand at the same place of the prediction.
Examples:
    >>> from hf_mech.metrics import load
    >>> metric = load("path_accuracy")
    >>> metric.compute(predictions=[[3, 7, 2], [3, 1, 2]], references=[[3, 7, 2], [3, 7, 2]])
    {'path_accuracy': 0.5, 'node_accuracy': 0.8333333333333334}
"""

Array = Any
"""A numpy array or a torch tensor: the methods used here exist in both, so this file does not import torch."""


class PathAccuracy(evaluate.Metric):
    """Paths of different lengths may be added."""

    def _info(self) -> evaluate.MetricInfo:
        tokens = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": tokens, "references": tokens}),
        )

    def _compute(self, predictions: list[list[int]], references: list[list[int]]) -> dict[str, float]:
        pairs = list(zip(predictions, references, strict=True))
        if not pairs:
            raise ValueError("Path accuracy needs a path at least, got none; add predictions and references.")
        for number, (_, reference) in enumerate(pairs):
            _check(reference, number)
        nodes = sum(len(reference) for reference in references)
        right = sum(a == b for pair in pairs for a, b in zip(*pair, strict=False))
        return {
            "path_accuracy": sum(list(predicted) == list(reference) for predicted, reference in pairs) / len(pairs),
            "node_accuracy": right / nodes,
        }


def paths_right(predictions: Array, references: Array) -> Array:
    """True for paths that are right at every node, on the predictions' device.

    Args:
        predictions: an array or tensor [graphs, length]; of another length than the references, all paths are wrong.
        references: the true paths [graphs, length], of the same kind.

    Returns:
        Booleans [graphs].

    Raises:
        ValueError: other numbers of graphs or of dimensions.

    Example:

    ```python
    >>> import numpy as np
    >>> paths_right(np.array([[3, 7, 2], [3, 1, 2]]), np.array([[3, 7, 2], [3, 7, 2]])).tolist()
    [True, False]

    ```
    """
    if predictions.ndim != 2 or references.ndim != 2 or predictions.shape[0] != references.shape[0]:
        raise ValueError(
            "Expected predictions and references [graphs, length], got "
            f"{tuple(predictions.shape)} and {tuple(references.shape)}."
        )
    if predictions.shape != references.shape:
        return (predictions[:, :0] == predictions[:, :0]).all(1) & False
    return (predictions == references).all(1)


def _check(reference: list[int], number: int) -> None:
    """Raises ValueError for a path without nodes, or a mask instead of a token."""
    if len(reference) == 0 or min(reference) < 0:
        raise ValueError(
            f"Reference {number} must be the tokens of a path, 0 or more, got {list(reference)}; "
            "cut the prompt's -100 off."
        )
