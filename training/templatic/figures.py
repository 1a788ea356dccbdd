"""The pictures of the card: exact completions by split, and the training losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hf_mech.hub import Measurement
from hf_mech.programs.templatic.figures import losses_figure, splits_figure

from ..engine.loop import POINTS
from .run import RunOutcome


def figures_of(
    outcomes: Iterable[RunOutcome], exact: Iterable[Measurement], heads: Mapping[str, str]
) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name."""
    return {
        "exact_match_by_split.png": (
            _splits(exact, heads),
            "Completions that are right in every word, in per cent of each split; in small print the paper's figure "
            "for a model of full size. To the right of the gap: out of distribution",
        ),
        "training_loss.png": (_losses(outcomes), "Training loss by step, over the words of the completion"),
    }


def _splits(exact: Iterable[Measurement], heads: Mapping[str, str]) -> Figure:
    ours: dict[str, dict[str, float]] = {}
    paper: dict[str, dict[str, float]] = {}
    for entry in exact:
        setting, split = entry.setting, entry.setting["split"]
        label = _label(setting["model"], setting["departures"])
        ours.setdefault(label, {})[split] = entry.mean
        if entry.paper is not None:
            paper.setdefault(label, {})[split] = entry.paper.mean
    return splits_figure(ours, paper, heads)


def _losses(outcomes: Iterable[RunOutcome]) -> Figure:
    losses: dict[str, list[tuple[Sequence[float], list[float]]]] = {}
    for outcome in outcomes:
        run = outcome.settings
        steps = max(run.steps // POINTS, 1) * np.arange(1, len(outcome.losses) + 1)
        losses.setdefault(_label(run.model, run.departures), []).append((steps.tolist(), outcome.losses))
    return losses_figure(losses)


def _label(model: str, departures: dict[str, Any]) -> str:
    """How a picture names a setting: by its model and its departures from the preset."""
    parts = (f"{value:,} {name}" if name == "steps" else f"{name} {value}" for name, value in departures.items())
    return "\n".join([model, *parts])
