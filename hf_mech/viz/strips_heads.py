"""The attention of each head of a STRIPS Transformer on a trace (STRIPS Transformer paper, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from .palette import CELL_EDGE, INK, WRONG, WRONG_FILL

Floats = NDArray[np.floating]

_LETTER = 0.19
"""The width of a letter, in cells."""

_MOST_LETTERS = 4
"""Longer action names are written vertically over the columns."""


def attention_arrays(theta: Floats, trace: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """S, S' and y of Eq. 11 to 16, as written there.

    Args:
        theta: [F, A, 3], in [0, 1].
        trace: n action indices.

    Returns:
        The masked scores S [F, n, n], the stick-breaking scores S' [F, n, n], and the heads' outputs y [F, n].
    """
    n = len(trace)
    query, key, value = np.moveaxis(theta[:, list(trace)], -1, 0)  # Eq. 11 to 13, each [F, n]
    scores = query[:, :, None] * key[:, None, :] * np.tri(n, k=-1)  # Eq. 14, and strict future masking
    rest = np.ones_like(scores)
    for j in reversed(range(n - 1)):
        rest[:, :, j] = rest[:, :, j + 1] * (1 - scores[:, :, j + 1])
    sticks = scores * rest  # Eq. 15
    return scores, sticks, np.einsum("fij,fj->fi", sticks, value)  # Eq. 16


def attention_figure(
    actions: Sequence[str],
    propositions: Sequence[str],
    scores: Floats,
    sticks: Floats,
    outputs: Floats,
    *,
    title: str = "",
    per_row: int = 3,
) -> Figure:
    """Figure 3: for each head the score matrix, masked cells blank, shaded by S', and the output y beside it.

    Args:
        actions: the trace as n names.
        propositions: F names, one a head.
        scores, sticks: S and S', [F, n, n].
        outputs: y, [F, n].
    """
    n, heads = len(actions), len(propositions)
    columns = min(per_row, heads)
    rows = -(-heads // columns)
    longest = max(len(a) for a in actions)
    tall = longest > _MOST_LETTERS
    cell = 0.34
    margin = _LETTER * max(longest, 2) + 0.5
    panel = (margin + n + 1.9, n + 1.7 + (_LETTER * longest if tall else 0.6))  # in cells
    top = 1.0 if title else 0.1
    figure = Figure(figsize=(columns * panel[0] * cell, (rows * panel[1] + top) * cell))
    width, height = figure.get_size_inches() / cell
    for head, name in enumerate(propositions):
        row, column = divmod(head, columns)
        left, bottom = column * panel[0], height - top - (row + 1) * panel[1]
        axes = figure.add_axes((left / width, bottom / height, panel[0] / width, panel[1] / height))
        above = panel[1] - n - 0.3
        axes.set(xlim=(-margin, panel[0] - margin), ylim=(n + 0.3, -above))
        axes.axis("off")
        axes.text(n / 2, 0.45 - above, f"head {name}", size=9, weight="bold", ha="center", va="center", color=INK)
        _draw_head(axes, actions, scores[head], sticks[head], outputs[head], tall)
    if title:
        figure.text(0.3 / width, 1 - 0.65 / height, title, size=10, weight="bold", color=INK, parse_math=False)
    return figure


def _draw_head(axes: Axes, actions: Sequence[str], scores: Floats, sticks: Floats, outputs: Floats, tall: bool) -> None:
    """One panel, in units of cells: the matrix has its upper left corner at (0, 0), y grows downwards."""
    n = len(actions)
    for i in range(n):
        for j in range(n):
            shade = 1 - 0.35 * float(sticks[i, j])
            axes.add_patch(Rectangle((j, i), 1, 1, facecolor=(shade,) * 3, edgecolor=CELL_EDGE, linewidth=0.6))
            if j < i:
                _number(axes, j, i, scores[i, j], INK)
        bad = outputs[i] >= 0.5
        face = WRONG_FILL if bad else "white"
        axes.add_patch(Rectangle((n + 0.5, i), 1, 1, facecolor=face, edgecolor=CELL_EDGE, linewidth=0.6))
        _number(axes, n + 0.5, i, outputs[i], WRONG if bad else INK)
        axes.text(-0.2, i + 0.5, actions[i], size=8, ha="right", va="center", color=INK, parse_math=False)
        axes.text(
            i + 0.5,
            -0.2,
            actions[i],
            size=8,
            ha="center",
            va="bottom",
            rotation=90 if tall else 0,
            color=INK,
            parse_math=False,
        )
    axes.text(n + 1, -0.2, "y", size=8, ha="center", va="bottom", style="italic", color=INK)


def _number(axes: Axes, x: float, y: float, value: float, colour: str) -> None:
    """0 and 1 as such, others to two digits without the leading zero."""
    text = f"{value:.0f}" if abs(value - round(value)) < 0.005 else f"{value:.2f}".lstrip("0")
    axes.text(x + 0.5, y + 0.5, text, size=8 if len(text) == 1 else 6.5, ha="center", va="center", color=colour)
