"""The pictures of a card: returns over the training, all models side by side, and an episode to look at."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import inf
from typing import Any

from matplotlib.figure import Figure
from scipy import stats

from hf_mech.control.figures import film, heads_figure, intervals_figure, key_states, return_curves
from hf_mech.control.play import watch
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.loop import POINTS
from .run import RunOutcome, means
from .settings import PEER, Run

# ----------------------------------------------------------------------------------------------------------------------
# Means over few seeds, and their intervals.


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of the mean's 95 % interval by Student's t; None for a single value.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    >>> interval([2.0, 2.0])
    (2.0, 2.0)
    """
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(mean - half), float(mean + half)


def in_words(
    values: Sequence[float], scale: float = 1.0, digits: int = 1, limits: tuple[float, float] = (-inf, inf)
) -> str:
    """The mean and its interval, such as `12.0 [10.5, 13.5]`.

    Args:
        values: one a seed.
        scale: of what is written.
        digits: behind the point.
        limits: the least and the largest possible mean; the interval ends there.

    >>> in_words([0.1, 0.2, 0.3], 100)
    '20.0 [-4.8, 44.8]'
    >>> in_words([-0.001], digits=2)  # no minus before a zero
    '0.00'
    """
    said, ends = f"{scale * statistics.fmean(values):z.{digits}f}", interval(values)
    if ends is None:
        return said
    possible = (scale * min(max(end, limits[0]), limits[1]) for end in ends)
    return f"{said} [{', '.join(f'{end:z.{digits}f}' for end in possible)}]"


# ----------------------------------------------------------------------------------------------------------------------
# Returns over the training, and all models side by side.


NAMES = {"baseline": "baseline", "mat": "MAT", "msat": "M-SAT", PEER: "transformers' own"}
"""The models' names in the pictures: those of the paper, and the peer."""


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


# ----------------------------------------------------------------------------------------------------------------------
# An episode of a trained model: its film, and the attention of every head (Sections 5.3.1 and 7.6).


EPISODE = 0
"""The number of the held-out episode: the first one, whatever came of it."""
_FILM_WIDTH = 192


def pictures_of(run: Run, model: MSATDecisionTransformer) -> dict[str, tuple[Figure | bytes, str]]:
    """The film of an episode and the attention in it, by file name with their captions.

    Args:
        run: of the model.
        model: with eager attention, in evaluation mode.
    """
    options: dict[str, Any] = run.environment_options
    if run.place.frames:
        options = options | {"render_mode": "rgb_array"}
    watched = watch(model, run.place.environment, EPISODE, target_return=run.target_return, seed=run.seed, **options)
    attentions, names, first = watched.attention(model)
    states = key_states(attentions, names)
    frames = {name: watched.pictures[int(name[1:])] for name in states} if len(watched.pictures) else {}
    end = f"{'solved' if watched.score.success else 'not solved'}, return {watched.score.total_return:.2f}"
    steps = f"steps {first} to {first + len(names) // model.config.tokens_per_step - 1}"
    figures: dict[str, tuple[Figure | bytes, str]] = {
        "attention.png": (
            heads_figure(attentions, names, states, frames),
            f"The attention of every head in {steps} of an episode, and the states that some head reads most (Figures "
            "9 to 15 of the paper): a row is a token that reads, a column a token that is read, and s is a state",
        ),
    }
    if len(watched.pictures):
        caption = f"A held-out episode, played by argmax: {end}, {watched.score.length} decisions"
        figures["episode.gif"] = film(watched.pictures, scale=max(1, _FILM_WIDTH // watched.pictures.shape[2])), caption
    return figures
