"""The pictures of a card that compare runs: returns over the training, and all models side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from hf_mech.control.figures import intervals_figure, return_curves
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.loop import POINTS
from .intervals import interval
from .run import RunOutcome, means
from .settings import Run

NAMES = {"baseline": "baseline", "mat": "MAT", "msat": "M-SAT"}
"""The models' names in the pictures: those of the paper."""


def figures_of(outcomes: Sequence[RunOutcome]) -> dict[str, tuple[Figure | bytes, str]]:
    """Pictures with their captions, by file name. Runs that depart from the preset are in the tables alone."""
    usual = [outcome for outcome in outcomes if not outcome.settings.departures] or list(outcomes)
    by_model: dict[str, list[RunOutcome]] = {}
    for outcome in usual:
        by_model.setdefault(_label(outcome.settings), []).append(outcome)
    data = _mean([value for outcome in usual for value in outcome.data_returns])
    curves = {
        model: [[(point["step"], point["return"]) for point in outcome.curve] for outcome in own]
        for model, own in by_model.items()
    }
    finals = {model: [means(outcome.argmax)["return"] for outcome in own] for model, own in by_model.items()}
    ends = {model: end for model, values in finals.items() if (end := interval(values)) is not None}
    found: dict[str, tuple[Figure | bytes, str]] = {
        "returns_over_training.png": (
            return_curves(curves, data, unit="mean return of held-out episodes"),
            "Mean return of held-out episodes while the models train (Figure 3 of the paper): by argmax, the mean of "
            "the seeds between the least and the largest",
        ),
        "training_loss.png": (
            losses_figure(
                {model: [_losses(one) for one in own] for model, own in by_model.items()}, "nats a component"
            ),
            "Training loss by step",
        ),
    }
    if len(finals) > 1:
        found["returns.png"] = (
            intervals_figure(finals, ends, data, "mean return of held-out episodes"),
            "Mean return of held-out episodes (Tables 2 and 3 of the paper): by argmax, a point a seed, the mean and "
            "its 95 % interval",
        )
    return found


def _losses(outcome: RunOutcome) -> tuple[list[int], list[float]]:
    every = max(outcome.steps // POINTS, 1)
    return [every * (number + 1) for number in range(len(outcome.losses))], outcome.losses


def _label(run: Run) -> str:
    return NAMES[run.model] + ("" if run.positions == "on" else ", no PE")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
