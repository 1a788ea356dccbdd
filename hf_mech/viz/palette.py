"""The colours of all figures, by meaning, and the style of axes with curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1a1a1a"
"""Text, and numbers in cells."""

OURS = "#0b6e99"
"""Our measurements; also the first curve."""

PAPER = MUTED = "#8c8c8c"
"""A paper's figures, comparisons, and secondary headings."""

ACCENT = "#c8553d"
"""A second curve beside ours."""

WRONG, WRONG_FILL = "#d1242f", "#fbe3e4"
"""Errors and surplus: text or outline, and background."""

MISSING = "#b4b4b4"
"""Missing items."""

GRID, CELL_EDGE, MATRIX_EDGE = "#e6e6e6", "#c8c8c8", "#dddddd"
"""Lines: behind curves, around cells with numbers, around cells of a shaded matrix."""

SHADED = "#f2f2f2"
"""The background of a part of the axes, such as the trained lengths."""

CYCLE = (OURS, "#c2571a", "#4a7c2f", "#8250a8", "#b0313f", MUTED)
"""Curves by number."""

LONG_CYCLE = (OURS, ACCENT, "#e9a03b", "#5b8c5a", "#8c6bb1", MUTED, "#3aa6a0", "#b5838d")
"""Curves by number, for more than six."""

PASTELS = ("#8ecae6", "#ffd166", "#b8e0a8", "#f4a6a0", "#cdb4db", "#f6bd60", "#94d2bd", "#e5989b", "#bde0fe")
"""Backgrounds of groups of cells, with text on them."""

PASTEL_GREY = "#dfe3e8"
"""The background of cells without a group."""

DARK, SOFT, FAINT, HAIRLINE = "#1f2328", "#6e7781", "#a8b0b8", "#e3e6ea"
"""With pastels: text, secondary text, text of productions without effect, and lines between cells."""

PAGE = {
    "paper": ("#ffffff", "#14171b"),
    "panel": ("#f7f8f9", "#1b1f24"),
    "ink": (DARK, "#e3e7eb"),
    "soft": ("#515a63", "#a3adb7"),
    "faint": ("#66707a", "#87919b"),
    "line": (HAIRLINE, "#2b3138"),
    "edge": ("#c9cfd6", "#434b54"),
    "accent": (OURS, "#6cc0ea"),
    "on-accent": ("#ffffff", "#0c1318"),
    "new": ("#e4f1f7", "#173544"),
    "read": ("#b04e15", "#f0a36b"),
    "read-fill": ("#fdeee3", "#3d2817"),
    "wrong": (WRONG, "#ff8a8f"),
    "wrong-fill": (WRONG_FILL, "#43202a"),
}
"""Of the explorer's pages, by meaning: in a light and in a dark scheme. Text has a contrast of 4.5 or more."""


def style(axes: Axes, *, grid: Literal["x", "y", "both"] = "y", ticks: Literal["major", "both"] = "major") -> None:
    """The style of axes with curves: a faint grid, no frame at the top and right, small tick labels.

    Args:
        axes: the axes to style.
        grid: the axis of the grid lines, as in matplotlib; `y` for horizontal lines.
        ticks: the ticks with small labels; `both` includes the minor ones of a logarithmic scale.
    """
    axes.tick_params(labelsize=7.5, which=ticks)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
