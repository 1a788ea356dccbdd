"""Validation perplexity by epoch, a panel for every kind of run, a line for every form of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from .palette import ACCENT, MUTED, OURS, style

_COLOURS = {"vanilla": MUTED, "stack": ACCENT, "gated": OURS}
_LABELS = {"vanilla": "vanilla", "stack": "stack", "gated": "stack with gate"}


def perplexity_figure(panels: Mapping[str, tuple[int, Mapping[str, Sequence[Sequence[float]]]]]) -> Figure:
    """Mean over seeds as lines, one standard deviation as shade.

    Args:
        panels: title to the first epoch (0: before the first step) and, by form (`vanilla`, `stack`, `gated`), the
            perplexities of every seed, epoch by epoch.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.6 * rows + 0.35), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (title, (first, forms)) in zip(grid.flat, panels.items(), strict=False):
        _draw(axes, forms, first)
        axes.set_title(title, size=9, weight="bold", loc="left")
    for axes in grid[:, 0]:
        axes.set_ylabel("validation perplexity", size=8)
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8
    )
    return figure


def _draw(axes: Axes, forms: Mapping[str, Sequence[Sequence[float]]], first: int) -> None:
    for form, colour in _COLOURS.items():
        if form not in forms:
            continue
        shortest = min(map(len, forms[form]))  # seeds may stop early
        curves = np.array([curve[:shortest] for curve in forms[form]])
        epochs, mean, std = np.arange(first, first + shortest), curves.mean(0), curves.std(0)
        axes.plot(epochs, mean, color=colour, marker="o", ms=3, linewidth=1.4, label=_LABELS[form])
        axes.fill_between(epochs, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis(ScalarFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch", size=8)
    style(axes, ticks="both")
