"""The pictures of the card: Figures 2, 4 and 8 of the paper, and path accuracy over the training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from hf_mech.lookahead.figures import accuracy_bars, accuracy_curves
from hf_mech.probing.state_probe_figures import probes_figure

from .run import RunOutcome
from .settings import BASELINES, Run

LABELS = {
    "bst": "Belief State Transformer",
    "forward_only": "forward-only",
    "augmented": "data augmentation",
    "fim": "fill in the middle",
    "teacherless": "multi-token",
    "next_latent": "next-latent",
    "multi_token": "multi-token, heads",
    "joint_multi_token": "multi-token, joint",
    "bst_without_prev": "Belief w/o Prev",
    "bst_without_backward": "Belief w/o Backward",
}
"""The models' names in the pictures: those of the paper."""
METHODS = ("bst", *BASELINES)
ABLATIONS = ("bst", "bst_without_prev", "bst_without_backward", "forward_only")


def figures_of(outcomes: Sequence[RunOutcome]) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name: those for which there are runs.

    Runs that depart from the preset are in the table alone.
    """
    usual = [outcome for outcome in outcomes if not outcome.settings.departures] or list(outcomes)
    methods = [outcome for outcome in usual if outcome.settings.model in METHODS]
    ablations = [outcome for outcome in usual if outcome.settings.model in ABLATIONS]
    chance = {_name(outcome.settings): 1 / outcome.settings.final.degree for outcome in usual}
    found: dict[str, tuple[Figure, str]] = {}
    if methods:
        found |= {
            "path_accuracy.png": (
                accuracy_bars(_final(methods), chance),
                "Path accuracy by graph and model (Figure 2 of the paper): mean, and a point a seed; dashed: 1/d",
            ),
            "path_accuracy_over_training.png": (
                accuracy_curves(_curves(methods), chance),
                "Path accuracy by training step, a line a seed; dashed: 1/d",
            ),
        }
    if any(outcome.settings.model not in METHODS for outcome in ablations):
        found |= {
            "ablations.png": (
                accuracy_bars(_final(ablations), chance),
                "Path accuracy of BST and its ablations (Figure 4 of the paper): mean, and a point a seed; dashed: 1/d",
            ),
            "ablations_over_training.png": (
                accuracy_curves(_curves(ablations), chance),
                "Path accuracy of the ablations by training step, a line a seed; dashed: 1/d",
            ),
        }
    if probed := {
        model: group
        for model in ABLATIONS
        if (group := [one for one in usual if one.settings.model == model and one.probes])
    }:
        found["probes.png"] = (
            _probes(probed),
            "Accuracy of probes from the state behind the prompt (Figure 8 of the paper), mean over the seeds: the "
            "nodes of the path, the same over the training, and the nodes of the prompt's edges",
        )
    return found


def _final(outcomes: Iterable[RunOutcome]) -> dict[str, dict[str, list[float]]]:
    bars: dict[str, dict[str, list[float]]] = {}
    for outcome in outcomes:
        run = outcome.settings
        bars.setdefault(_name(run), {}).setdefault(LABELS[run.model], []).append(outcome.path_accuracy)
    return bars


def _curves(outcomes: Iterable[RunOutcome]) -> dict[str, dict[str, list[list[list[float]]]]]:
    curves: dict[str, dict[str, list[list[list[float]]]]] = {}
    for outcome in outcomes:
        run = outcome.settings
        curves.setdefault(_name(run), {}).setdefault(LABELS[run.model], []).append(outcome.curve)
    return curves


def _probes(probed: Mapping[str, Sequence[RunOutcome]]) -> Figure:
    first = next(iter(probed.values()))[0]
    same = {
        model: [one for one in group if one.settings.graph == first.settings.graph] for model, group in probed.items()
    }
    same = {model: group for model, group in same.items() if group}
    length = first.settings.final.length
    last = {LABELS[model]: _mean(group, -1) for model, group in same.items()}
    learner = next(iter(same))
    moments = range(min(len(one.probes) for one in same[learner]))
    return probes_figure(
        {label: values[:length] for label, values in last.items()},
        {label: values[length:] for label, values in last.items()},
        [first.probes[moment]["step"] for moment in moments],
        [_mean(same[learner], moment)[:length] for moment in moments],
        LABELS[learner],
    )


def _mean(group: Iterable[RunOutcome], moment: int) -> list[float]:
    values: list[float] = np.mean([one.probes[moment]["accuracy"] for one in group], 0).tolist()
    return values


def _name(run: Run) -> str:
    return f"G({run.final.degree},{run.final.length})"
