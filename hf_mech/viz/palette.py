"""The colours of all figures, by what they stand for, and the look of axes with curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1a1a1a"
"""Text, and numbers in cells."""

OURS = "#0b6e99"
"""What we measured; also the first of the curves."""

PAPER = MUTED = "#8c8c8c"
"""What a paper reports, what serves for comparison, and headings of lesser weight."""

ACCENT = "#c8553d"
"""A second curve beside ours."""

WRONG, WRONG_FILL = "#d1242f", "#fbe3e4"
"""What is wrong or too much: its text or outline, and the ground behind it."""

MISSING = "#b4b4b4"
"""What should be there and is not."""

GRID, CELL_EDGE, MATRIX_EDGE = "#e6e6e6", "#c8c8c8", "#dddddd"
"""Lines: behind curves, around cells with numbers, around cells of a shaded matrix."""

SHADED = "#f2f2f2"
"""The ground of a part of the axes, such as the lengths that were trained."""

CYCLE = (OURS, "#c2571a", "#4a7c2f", "#8250a8", "#b0313f", MUTED)
"""Curves by number."""

LONG_CYCLE = (OURS, ACCENT, "#e9a03b", "#5b8c5a", "#8c6bb1", MUTED, "#3aa6a0", "#b5838d")
"""Curves by number, where there are more than six."""

PASTELS = ("#8ecae6", "#ffd166", "#b8e0a8", "#f4a6a0", "#cdb4db", "#f6bd60", "#94d2bd", "#e5989b", "#bde0fe")
"""Grounds of cells that belong together, with text on them."""

PASTEL_GREY = "#dfe3e8"
"""The ground of cells that belong to no others."""

DARK, SOFT, FAINT, HAIRLINE = "#1f2328", "#6e7781", "#a8b0b8", "#e3e6ea"
"""Beside pastels: text, text of lesser weight, text of what did nothing, and lines between cells."""


def style(axes: Axes, *, grid: Literal["x", "y", "both"] = "y", ticks: Literal["major", "both"] = "major") -> None:
    """The look of axes with curves: a faint grid, no frame above and to the right, small labels of the ticks.

    Args:
        axes: those to be styled.
        grid: which way the grid's lines are counted; `y` for lines from left to right.
        ticks: whose labels are small; `both` for the minor ones of a logarithmic scale, too.
    """
    axes.tick_params(labelsize=7.5, which=ticks)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
