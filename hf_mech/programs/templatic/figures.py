"""Models by split: the share of exact completions beside the paper's; training losses; a parse by PARGEN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter, ScalarFormatter

from hf_mech.programs.psl.trace_picture import trace_figure
from hf_mech.viz.palette import INK, LONG_CYCLE, style


def splits_figure(
    accuracy: Mapping[str, Mapping[str, float]], paper: Mapping[str, Mapping[str, float]], heads: Mapping[str, str]
) -> Figure:
    """A cell for each model and split, shaded by our share of exact completions; the paper's share is below ours.

    Args:
        accuracy, paper: by model, then by split, shares from 0 to 1.
        heads: the splits in their order, and their names in the picture.
    """
    shares = np.array([[own.get(split, np.nan) for split in heads] for own in accuracy.values()])
    figure = Figure(figsize=(0.72 * len(heads) + 1.9, 0.52 * len(accuracy) + 1.1), layout="constrained")
    axes = figure.subplots()
    shade = axes.imshow(shares, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto")
    for row, model in enumerate(accuracy):
        for column, split in enumerate(heads):
            ours, theirs = accuracy[model].get(split), paper.get(model, {}).get(split)
            if ours is None:
                continue
            text: dict[str, Any] = {"ha": "center", "va": "center", "color": "white" if ours > 0.6 else INK}
            axes.text(column, row - 0.14 * (theirs is not None), f"{100 * ours:.1f}", size=8.5, **text)
            if theirs is not None:
                axes.text(column, row + 0.24, f"paper {100 * theirs:.1f}", size=6, **text)
    axes.set_xticks(range(len(heads)), list(heads.values()), size=8)
    axes.set_yticks(range(len(accuracy)), list(accuracy), size=8.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.axvline(2.5, color="white", linewidth=3)  # from here on: out of distribution
    bar = figure.colorbar(shade, ax=axes, pad=0.01, format=FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))
    bar.ax.tick_params(labelsize=7, length=0)
    bar.outline.set_visible(False)
    return figure


def losses_figure(
    losses: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]], unit: str = "nats a word"
) -> Figure:
    """The training loss against the step, a line a run.

    Args:
        losses: by model, for each of its runs the steps and the losses there.
        unit: of the losses.
    """
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes: Axes = figure.subplots()
    for (model, runs), colour in zip(losses.items(), cycle(LONG_CYCLE), strict=False):
        for number, (steps, values) in enumerate(runs):
            axes.plot(steps, values, color=colour, linewidth=1.3, label=model if number == 0 else None)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))  # over several decades, powers of ten alone
    axes.set_xlabel("step", size=8)
    axes.set_ylabel(f"training loss, {unit}", size=8)
    style(axes, ticks="both")
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


_REGISTERS = {"r": "region", "f": "field", "s": "symbol", "p": "position", "t": "type", "d": "index"}  # as in (36)


def parse_figure(model: Any, tokenizer: Any, prompt: str) -> Figure:
    """The parse of a templatic prompt by a PARGEN, its completion, and the writes of each production.

    Args:
        model, tokenizer: `pargen` or `pargen_k_shot`, compiled.
        prompt: as the program reads it.
    """
    return trace_figure(
        *(model, tokenizer, prompt, _REGISTERS),
        corners=("r", "f", "t", "d"),
        symbol="s",
        colour_by="f",
        neutral=("FQ", "FA"),
    )
