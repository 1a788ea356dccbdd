"""The stack of each layer while a text is read (stack attention paper, App. D, Figures 2 to 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .palette import INK, MATRIX_EDGE, MUTED

Floats = NDArray[np.floating]

_CELL = 0.23
"""The side of a cell, in inches."""

_LETTER = 0.3
"""The width of a letter, in cells."""

_LONGEST_STACK = 12
"""The longest written stack; of a longer one, the letters nearest to the top are written."""


@dataclass(frozen=True)
class LayerStack:
    """One layer's stack over a text of N tokens.

    Attributes:
        alpha: alpha_i(n) of Eq. 19 to 24, [N, N]: row i is the top of the stack after token i.
        operations: the most probable operation at each token, N texts; the first is for the empty stack.
        stacks: the stack that these operations build, after each token, N texts, the top on the right.
    """

    alpha: Floats
    operations: Sequence[str]
    stacks: Sequence[str]


def stack_attention_figure(
    tokens: Sequence[str], layers: Sequence[LayerStack], *, title: str = "", per_row: int = 3
) -> Figure:
    """A panel a layer: the stack attention of every token, from the first down; the operation and the stack beside it.

    Args:
        tokens: the text, N tokens, beginning with the token of the empty stack.
        layers: their stacks, from the first layer on.
        title: written over the panels.
        per_row: panels in a row.

    Raises:
        ValueError: if a layer's stack is not over `tokens`, or there is no layer.
    """
    n = len(tokens)
    if not layers:
        raise ValueError("There is no layer to draw; give the stack of at least one.")
    for number, layer in enumerate(layers, start=1):
        sizes = (*np.shape(layer.alpha), len(layer.operations), len(layer.stacks))
        if sizes != (n, n, n, n):
            raise ValueError(
                f"Layer {number} must have alpha [{n}, {n}], {n} operations and {n} stacks, as there are {n} tokens; "
                f"got alpha {list(np.shape(layer.alpha))}, {len(layer.operations)} operations and "
                f"{len(layer.stacks)} stacks."
            )
    longest = max(len(token) for token in tokens)
    operation = _LETTER * max(len(text) for layer in layers for text in ("does", *layer.operations)) + 0.9
    stack = _LETTER * max(len(_shortened(text)) for layer in layers for text in ("stack", *layer.stacks)) + 0.6
    left, above = _LETTER * longest + 0.5, (_LETTER * longest if longest > 1 else 0.8) + 1.8
    panel = (left + n + 0.5 + operation + stack, above + n + 0.6)  # in cells
    columns = min(per_row, len(layers))
    rows = -(-len(layers) // columns)
    top = 1.6 if title else 0.2
    width, height = columns * panel[0], rows * panel[1] + top
    figure = Figure(figsize=(width * _CELL, height * _CELL))
    for number, layer in enumerate(layers):
        row, column = divmod(number, columns)
        bottom = height - top - (row + 1) * panel[1]
        axes = figure.add_axes((column * panel[0] / width, bottom / height, panel[0] / width, panel[1] / height))
        axes.set(xlim=(-left, panel[0] - left), ylim=(n + 0.6, -above))
        axes.axis("off")
        axes.text(0, 0.7 - above, f"layer {number + 1}", size=9, weight="bold", va="center", color=INK)
        _draw_layer(axes, tokens, layer, n + 0.5, n + 0.5 + operation)
    if title:
        figure.text(0.5 / width, 1 - 0.8 / height, title, size=10, weight="bold", va="center", parse_math=False)
    return figure


def _draw_layer(axes: Axes, tokens: Sequence[str], layer: LayerStack, operations_at: float, stacks_at: float) -> None:
    """One panel, in units of cells: the matrix has its upper left corner at (0, 0), y grows downwards."""
    n = len(tokens)
    axes.imshow(layer.alpha, cmap="Blues", vmin=0, vmax=1, extent=(0, n, n, 0), aspect="auto", interpolation="nearest")
    axes.hlines(range(n + 1), 0, n, color=MATRIX_EDGE, linewidth=0.5)
    axes.vlines(range(n + 1), 0, n, color=MATRIX_EDGE, linewidth=0.5)
    tall = any(len(token) > 1 for token in tokens)

    def write(x: float, y: float, text: str, color: str = INK, **how: object) -> None:
        axes.text(x, y, text, size=7, color=color, parse_math=False, family="monospace", **how)  # type: ignore[arg-type]

    for i, token in enumerate(tokens):
        write(-0.25, i + 0.5, token, ha="right", va="center")
        write(i + 0.5, -0.25, token, ha="center", va="bottom", rotation=90 if tall else 0)
        write(operations_at, i + 0.5, layer.operations[i], ha="left", va="center")
        write(stacks_at, i + 0.5, _shortened(layer.stacks[i]), ha="left", va="center")
    write(operations_at, -0.25, "does", MUTED, ha="left", va="bottom")
    write(stacks_at, -0.25, "stack", MUTED, ha="left", va="bottom")


def _shortened(stack: str) -> str:
    return stack if len(stack) <= _LONGEST_STACK else f"…{stack[1 - _LONGEST_STACK :]}"
