"""Accuracy at every length, trained and beyond, beside the paper's mean (stack attention paper, §4, Tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .palette import CYCLE, SHADED, style


@dataclass(frozen=True)
class LengthCurve:
    """One line.

    Attributes:
        accuracy: the accuracy of every seed at each length.
        paper_mean: the paper's mean over the test lengths, if it has one.
    """

    accuracy: Mapping[int, tuple[float, ...]]
    paper_mean: float | None = None


def length_curves_figure(
    panels: Mapping[str, Mapping[str, LengthCurve]], *, trained: int, test: tuple[int, int], per_row: int = 2
) -> Figure:
    """Panels of lines by name: the seeds' mean, a band from the worst seed to the best, and the paper's mean dashed.

    Args:
        panels: panel's title to lines by name.
        trained: the longest length in training; the background up to it is shaded.
        test: the shortest and the longest length of the paper's score; its mean is drawn over them.
        per_row: panels in a row.
    """
    columns = min(per_row, max(len(panels), 1))
    rows = max(-(-len(panels) // columns), 1)
    figure = Figure(figsize=(4.4 * columns, 2.7 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = {name: CYCLE[number % len(CYCLE)] for number, name in enumerate(names)}
    for number, axes in enumerate(grid.flat):
        if number >= len(panels):
            axes.axis("off")
            continue
        title, lines = list(panels.items())[number]
        axes.set_title(title, size=9, weight="bold", loc="left", parse_math=False)
        axes.axvspan(1, trained, color=SHADED, zorder=0)
        for name, curve in lines.items():
            _draw_curve(axes, curve, colours[name], test)
        axes.set_ylim(0, 1.03)
        axes.set_xlim(1, max([test[1], *(length for curve in lines.values() for length in curve.accuracy)]))
        style(axes)
        axes.set_xlabel(f"length (trained: up to {trained}, shaded)", size=8)
        if number % columns == 0:
            axes.set_ylabel("accuracy per symbol", size=8)
    if names:
        handles = [grid.flat[0].plot([], [], color=colours[name], label=name)[0] for name in names]
        if any(curve.paper_mean is not None for lines in panels.values() for curve in lines.values()):
            handles.append(
                grid.flat[0].plot([], [], color="black", linestyle="--", linewidth=1, label="paper's mean")[0]
            )
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _draw_curve(axes: Axes, curve: LengthCurve, colour: str, test: tuple[int, int]) -> None:
    if curve.accuracy:
        lengths = sorted(curve.accuracy)
        values = np.array([curve.accuracy[length] for length in lengths])
        axes.plot(lengths, values.mean(1), color=colour, linewidth=1.4)
        axes.fill_between(lengths, values.min(1), values.max(1), color=colour, alpha=0.18, linewidth=0)
    if curve.paper_mean is not None:
        axes.hlines(curve.paper_mean, *test, color=colour, linestyle="--", linewidth=1)
