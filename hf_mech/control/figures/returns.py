"""Returns of played episodes: over the training (Figure 3 of M-SAT), and of all models with intervals (Tables 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hf_mech.viz.palette import INK, LONG_CYCLE, PAPER, style

Points = Sequence[tuple[float, float]]


def return_curves(curves: Mapping[str, Sequence[Points]], data: float, *, unit: str = "return") -> Figure:
    """A line a model: the mean over the seeds by training step, between the least and the largest.

    Args:
        curves: by model, for each seed the pairs of step and value.
        data: the mean of the training episodes, dashed.
        unit: the name of the value.
    """
    figure = Figure(figsize=(5.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, (model, seeds) in enumerate(curves.items()):
        shared = min((len(points) for points in seeds), default=0)
        if not shared:
            continue
        steps = [step for step, _ in seeds[0][:shared]]
        values = np.array([[value for _, value in points[:shared]] for points in seeds])
        colour = LONG_CYCLE[number % len(LONG_CYCLE)]
        axes.plot(steps, values.mean(0), ".-", color=colour, linewidth=1.3, label=model)
        axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
    _data_line(axes, data, horizontal=True)
    low, high = axes.get_ylim()
    axes.set_ylim(low := min(0.0, low), high + 0.05 * (high - low))
    axes.set_xlabel("training step", size=8)
    axes.set_ylabel(unit, size=8)
    style(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


def intervals_figure(
    values: Mapping[str, Sequence[float]], intervals: Mapping[str, tuple[float, float]], data: float, unit: str
) -> Figure:
    """A row a model: a point a seed, the mean, and its interval.

    Args:
        values: by model, one a seed.
        intervals: by model, the ends of the mean's interval; models of one seed have none.
        data: the mean of the training episodes, dashed.
        unit: the name of the value.
    """
    figure = Figure(figsize=(5.4, 0.9 + 0.36 * len(values)), layout="constrained")
    axes = figure.subplots()
    for place, (model, own) in enumerate(values.items()):
        colour = LONG_CYCLE[place % len(LONG_CYCLE)]
        if model in intervals:
            axes.plot(intervals[model], [place, place], color=colour, linewidth=1.6)
        axes.plot(own, [place] * len(own), ".", color=INK, markersize=3.5)
        axes.plot([float(np.mean(own))], [place], "o", color=colour, markersize=6)
    _data_line(axes, data, horizontal=False)
    axes.set_yticks(range(len(values)), list(values), size=8)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlabel(unit, size=8)
    style(axes, grid="x")
    return figure


def _data_line(axes: Axes, data: float, *, horizontal: bool) -> None:
    draw = axes.axhline if horizontal else axes.axvline
    draw(data, color=PAPER, linewidth=0.9, linestyle="--", label="training episodes")
