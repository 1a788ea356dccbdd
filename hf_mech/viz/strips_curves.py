"""Test accuracy against the number of training traces, ours and the paper's (STRIPS Transformer paper, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from .palette import OURS, PAPER, style


@dataclass(frozen=True)
class Point:
    """One training-set size: the accuracy of every seed, and the paper's mean and standard deviation, if any."""

    size: int
    values: tuple[float, ...]
    paper_mean: float | None = None
    paper_std: float | None = None


def curves_figure(curves: Mapping[str, Sequence[Point]], *, per_row: int = 3, label: str = "test accuracy") -> Figure:
    """A panel a domain: every seed a dot, their mean a line; the paper's mean and standard deviation dashed."""
    columns = min(per_row, max(len(curves), 1))
    rows = max(-(-len(curves) // columns), 1)
    figure = Figure(figsize=(2.9 * columns, 2.35 * rows + 0.35), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    lowest = min((v for points in curves.values() for p in points for v in _extent(p)), default=0.0)
    for number, axes in enumerate(panels.flat):
        if number >= len(curves):
            axes.axis("off")
            continue
        name, points = list(curves.items())[number]
        _draw_curve(axes, points)
        axes.set_title(name, size=9, weight="bold", loc="left")
        axes.set_ylim(max(0.0, np.floor(lowest * 20 - 0.3) / 20), 1.015)
        if number % columns == 0:
            axes.set_ylabel(label, size=8)
        if number + columns >= len(curves):
            axes.set_xlabel("training traces", size=8)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _extent(point: Point) -> list[float]:
    paper = [] if point.paper_mean is None else [point.paper_mean - (point.paper_std or 0.0)]
    return [*point.values, *paper]


def _draw_curve(axes: Axes, points: Sequence[Point]) -> None:
    published = [(p.size, p.paper_mean, p.paper_std or 0.0) for p in points if p.paper_mean is not None]
    if published:
        sizes, means, stds = zip(*published, strict=True)
        axes.errorbar(
            sizes, means, stds, color=PAPER, linestyle="--", linewidth=1.1, capsize=2, marker="s", ms=3, label="paper"
        )
    for point in points:
        axes.plot([point.size] * len(point.values), point.values, ".", color=OURS, ms=5, alpha=0.3, mew=0)
    measured = [p for p in points if p.values]
    axes.plot(
        [p.size for p in measured],
        [np.mean(p.values) for p in measured],
        color=OURS,
        marker="o",
        ms=3.5,
        linewidth=1.5,
        label="ours (mean; dots: seeds)",
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([p.size for p in points]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    style(axes)
