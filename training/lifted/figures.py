"""The picture of the card: a row a domain, a column a kind of log."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from hf_mech.viz.palette import ACCENT, INK, OURS

LOWEST = 0.5  # shares below have the colour of this one


def verdicts_figure(shares: Mapping[str, Mapping[str, float]], titles: Mapping[str, str]) -> Figure:
    """A heat map with its figures.

    Args:
        shares: by domain and kind of log.
        titles: of the kinds of log; those without a figure are left out.
    """
    kinds = [name for name in titles if any(name in own for own in shares.values())]
    values = np.array([[own.get(name, np.nan) for name in kinds] for own in shares.values()])
    figure = Figure(figsize=(2.2 + 1.1 * len(kinds), 1.0 + 0.27 * len(shares)), layout="constrained")
    axes = figure.add_subplot()
    colours = LinearSegmentedColormap.from_list("shares", [ACCENT, "white", OURS])
    axes.imshow(values, cmap=colours, vmin=LOWEST, vmax=1, aspect="auto")
    for row, column in np.argwhere(~np.isnan(values)):
        share = values[row, column]
        text = "100" if share == 1 else f"{min(99.9, 100 * share):.1f}"
        dark = abs(share - (1 + LOWEST) / 2) > (1 - LOWEST) / 3
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else INK)
    axes.set_xticks(range(len(kinds)), [titles[name] for name in kinds], rotation=30, ha="left", fontsize=8)
    axes.set_yticks(range(len(shares)), list(shares), fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure
