"""What a Belief State Transformer gives the right token in every pair of a prefix and a suffix of a text (Eq. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .palette import CELL_EDGE, DARK, INK, OURS, SHADED

Floats = NDArray[np.floating]

_COLOURS = LinearSegmentedColormap.from_list("probability", ["white", OURS, DARK]).with_extremes(bad=SHADED)
_CELL = 0.24  # inches
_MARGINS = 1.1
_SIDE_BY_SIDE = 18  # suffixes at most; wider panels stand one above the other


def pairs_figure(prefixes: Sequence[str], suffixes: Sequence[str], panels: Mapping[str, Floats]) -> Figure:
    """A panel for each kind of token, a row a prefix, a column a suffix: white is 0, dark is 1, grey is no pair.

    Args:
        prefixes: the last token of each prefix.
        suffixes: the first token of each suffix.
        panels: title to probabilities [prefixes, suffixes], NaN where there is no pair.
    """
    columns = len(panels) if len(suffixes) <= _SIDE_BY_SIDE else 1
    rows = len(panels) // columns
    width, height = columns * (_CELL * len(suffixes) + _MARGINS) + 0.5, rows * (_CELL * len(prefixes) + _MARGINS)
    figure = Figure(figsize=(width, height), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(rows, columns, squeeze=False).flat, panels.items(), strict=True):
        axes.imshow(np.ma.masked_invalid(values), cmap=_COLOURS, vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title, size=9, color=INK)
        _named(axes, prefixes, suffixes)
    return figure


def _named(axes: Axes, prefixes: Sequence[str], suffixes: Sequence[str]) -> None:
    axes.set_xticks(range(len(suffixes)), suffixes, size=7.5, rotation=90, parse_math=False)
    axes.set_yticks(range(len(prefixes)), prefixes, size=7.5, parse_math=False)
    axes.set_xlabel("the suffix begins with", size=8)
    axes.set_ylabel("the prefix ends with", size=8)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(CELL_EDGE)


__all__ = ["pairs_figure"]
