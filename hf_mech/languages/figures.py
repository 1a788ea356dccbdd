"""The figures of stack attention's experiments: perplexity by epoch, accuracy by length, the stacks over a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray
from torch import Tensor

from hf_mech.models.stack import most_probable_operations, operations_as_text, stacks_of
from hf_mech.viz.palette import ACCENT, CYCLE, INK, MATRIX_EDGE, MUTED, OURS, SHADED, style

# ----------------------------------------------------------------------------------------------------------------------
# Perplexity by epoch (stack attention paper, §5).


_COLOURS = {"vanilla": MUTED, "stack": ACCENT, "gated": OURS, "between": CYCLE[3]}
_LABELS = {"vanilla": "vanilla", "stack": "stack", "gated": "stack with gate", "between": "stacks between layers"}


def perplexity_figure(panels: Mapping[str, tuple[int, Mapping[str, Sequence[Sequence[float]]]]]) -> Figure:
    """Validation perplexity by epoch, one panel a kind of run: the seeds' mean, and a band of a standard deviation.

    Args:
        panels: title to the first epoch (0: before the first step) and, by form (`vanilla`, `stack`, `gated`,
            `between`), the perplexities of every seed, epoch by epoch.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.6 * rows + 0.35), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (title, (first, forms)) in zip(grid.flat, panels.items(), strict=False):
        _draw_perplexity(axes, forms, first)
        axes.set_title(title, size=9, weight="bold", loc="left")
    for axes in grid[:, 0]:
        axes.set_ylabel("validation perplexity", size=8)
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8
    )
    return figure


def _draw_perplexity(axes: Axes, forms: Mapping[str, Sequence[Sequence[float]]], first: int) -> None:
    for form, colour in _COLOURS.items():
        if form not in forms:
            continue
        shortest = min(map(len, forms[form]))  # seeds may stop early
        curves = np.array([curve[:shortest] for curve in forms[form]])
        epochs, mean, std = np.arange(first, first + shortest), curves.mean(0), curves.std(0)
        axes.plot(epochs, mean, color=colour, marker="o", ms=3, linewidth=1.4, label=_LABELS[form])
        axes.fill_between(epochs, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(ScalarFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch", size=8)
    style(axes, ticks="both")


# ----------------------------------------------------------------------------------------------------------------------
# Accuracy at every length, trained and beyond, beside the paper's mean (stack attention paper, §4, Tables 1 and 2).


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
    panels: Mapping[str, Mapping[str, LengthCurve]],
    *,
    trained: int,
    test: tuple[int, int],
    per_row: int = 2,
    axes_labels: tuple[str, str] = ("length", "accuracy per symbol"),
) -> Figure:
    """Panels of lines by name: the seeds' mean, a band from the worst seed to the best, and the paper's mean dashed.

    Args:
        panels: panel's title to lines by name.
        trained: the longest length in training; the background up to it is shaded.
        test: the shortest and the longest length of the paper's score; its mean is drawn over them.
        per_row: panels in a row.
        axes_labels: what stands below and beside the panels; the lengths may be other numbers.
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
        axes.set_xlabel(f"{axes_labels[0]} (trained: up to {trained}, shaded)", size=8)
        if number % columns == 0:
            axes.set_ylabel(axes_labels[1], size=8)
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


# ----------------------------------------------------------------------------------------------------------------------
# The stack of each layer while a text is read (stack attention paper, App. D, Figures 2 to 5).


Floats = NDArray[np.floating]

_CELL = 0.23
"""The side of a cell, in inches."""

_LETTER = 0.3
"""The width of a letter, in cells."""

_LONGEST_STACK = 12
"""The most letters written of a stack; of a longer one, those nearest to the top."""


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


def layer_stack(tokens: Sequence[str], alpha: Tensor, actions: Tensor) -> LayerStack:
    """A layer's stack over a text, from a model's outputs.

    Args:
        tokens: as they are to be shown.
        alpha: its `stack_attentions`, [N, N].
        actions: its `stack_actions`, [N, actions].
    """
    pops = actions.shape[-1] - 2
    operations = most_probable_operations(actions.unsqueeze(0))[0]
    return LayerStack(
        alpha=alpha.float().numpy(),
        operations=["", *operations_as_text(operations, list(tokens), pops).split(" · ")],
        stacks=["".join(tokens[place] for place in (0, *stack)) for stack in stacks_of(operations, pops)],
    )


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
        ValueError: a layer's stack is not over `tokens`, or there is no layer.
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
