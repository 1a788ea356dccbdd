"""The pictures of the card: path accuracy by model and graph, and over the training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from hf_mech.hub import Measurement
from hf_mech.viz.path_accuracy import accuracy_bars, accuracy_curves

from .run import RunOutcome
from .settings import GRAPHS

LABELS = {
    "bst": "Belief State Transformer",
    "forward_only": "forward-only",
    "augmented": "data augmentation",
    "fim": "fill in the middle",
    "teacherless": "multi-token",
    "bst_without_prev": "Belief w/o Prev",
    "bst_without_backward": "Belief w/o Backward",
}
"""The models' names in the pictures: those of the paper."""


def figures_of(outcomes: Sequence[RunOutcome], measured: Iterable[Measurement]) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name."""
    return {
        "path_accuracy.png": (
            _bars(measured),
            "Path accuracy by graph and model (Figures 2 and 4 of the paper): mean and single seeds; dashed: 1/d",
        ),
        "path_accuracy_over_training.png": (_curves(outcomes), "Path accuracy by training step, a line a seed"),
    }


def _bars(measured: Iterable[Measurement]) -> Figure:
    bars: dict[str, dict[str, list[float]]] = {}
    for entry in measured:
        if entry.metric == "path_accuracy":
            bars.setdefault(_name(entry.setting["graph"]), {}).setdefault(
                LABELS[entry.setting["model"]], []
            ).extend(entry.values)
    return accuracy_bars(bars, {_name(graph): 1 / degree for graph, (degree, _) in GRAPHS.items()})


def _curves(outcomes: Iterable[RunOutcome]) -> Figure:
    curves: dict[str, dict[str, list[list[list[float]]]]] = {}
    for outcome in outcomes:
        run = outcome.settings
        curves.setdefault(_name(run.graph), {}).setdefault(LABELS[run.model], []).append(outcome.curve)
    return accuracy_curves(curves, {_name(graph): 1 / degree for graph, (degree, _) in GRAPHS.items()})


def _name(graph: str) -> str:
    degree, length = GRAPHS[graph]
    return f"G({degree},{length})"
