"""Star graphs: path accuracy as bars and curves, the probabilities of all pairs, and a path in its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hf_mech.viz.palette import ACCENT, CELL_EDGE, DARK, INK, LONG_CYCLE, OURS, PAPER, SHADED, WRONG, style


def accuracy_bars(accuracy: Mapping[str, Mapping[str, Sequence[float]]], chance: Mapping[str, float]) -> Figure:
    """A panel a graph, a bar a model: the mean over the seeds, with a point for each seed.

    Args:
        accuracy: by graph, then by model, the shares of right paths, from 0 to 1, one a seed.
        chance: by graph, the share that a random arm gets right.
    """
    models = _models(accuracy)
    figure = Figure(figsize=(1.6 + (0.5 + 0.42 * len(models)) * len(accuracy), 3.2), layout="constrained")
    panels = figure.subplots(1, len(accuracy), sharey=True, squeeze=False)[0]
    for axes, (graph, own) in zip(panels, accuracy.items(), strict=True):
        for place, model in enumerate(models):
            if values := own.get(model):
                mean = sum(values) / len(values)
                axes.bar(place, mean, color=_colour(place), width=0.75, label=model)
                axes.plot([place] * len(values), values, ".", color=INK, markersize=3)
                axes.text(place, min(mean + 0.02, 1.02), f"{100 * mean:.0f}", ha="center", size=7.5, color=INK)
        _panel(axes, graph, chance[graph])
        axes.set_xticks([])
    panels[0].set_ylabel("path accuracy", size=8)
    _legend(figure, panels)
    return figure


def accuracy_curves(
    curves: Mapping[str, Mapping[str, Sequence[Sequence[Sequence[float]]]]], chance: Mapping[str, float]
) -> Figure:
    """A panel a graph, a line a seed: the path accuracy against the training step.

    Args:
        curves: by graph, then by model, for each seed the pairs of step and share.
        chance: by graph, the share that a random arm gets right.
    """
    models = _models(curves)
    figure = Figure(figsize=(1.8 + 3.6 * len(curves), 3.2), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for axes, (graph, own) in zip(panels, curves.items(), strict=True):
        for model, seeds in own.items():
            for number, points in enumerate(seeds):
                steps, shares = zip(*points, strict=True) if points else ((), ())
                label = model if number == 0 else None
                axes.plot(steps, shares, color=_colour(models.index(model)), linewidth=1.3, label=label)
        _panel(axes, graph, chance[graph])
        axes.set_xlabel("training step", size=8)
    panels[0].set_ylabel("path accuracy", size=8)
    _legend(figure, panels)
    return figure


def _models(by_graph: Mapping[str, Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(model for own in by_graph.values() for model in own))


def _colour(place: int) -> str:
    return LONG_CYCLE[place % len(LONG_CYCLE)]


def _panel(axes: Axes, graph: str, chance: float) -> None:
    axes.axhline(chance, color=PAPER, linewidth=0.9, linestyle="--")
    axes.set_title(graph, size=9)
    axes.set_ylim(0, 1.1)
    style(axes)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    found: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in found}
    figure.legend(list(found.values()), list(found), loc="outside right upper", frameon=False, fontsize=8)


# What a Belief State Transformer gives the right token in every pair of a prefix and a suffix of a text (Eq. 1).


Floats = NDArray[np.floating]

_COLOURS = LinearSegmentedColormap.from_list("probability", ["white", OURS, DARK]).with_extremes(bad=SHADED)
_CELL = 0.24  # inches
_MARGINS = 1.1
_LETTERS = 34  # of a sentence
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


def facts_figure(facts: Sequence[str], told: Sequence[int | None], sentences: Sequence[str], values: Floats) -> Figure:
    """A row a fact, a column a sentence: white is 0, dark is 1; a dot where the story tells the fact first.

    Args:
        facts: names of the rows.
        told: the column of each fact's dot, or None.
        sentences: of the story, in order.
        values: the probability of the story's own fact behind each sentence, [facts, sentences].
    """
    figure = Figure(figsize=(_CELL * len(sentences) + 2.4, _CELL * len(facts) + 2.6), layout="constrained")
    axes = figure.subplots()
    axes.imshow(values, cmap=_COLOURS, vmin=0, vmax=1, interpolation="nearest")
    for row, column in enumerate(told):
        if column is not None:
            axes.plot(column, row, ".", color=ACCENT, markersize=5)
    shown = [sentence if len(sentence) <= _LETTERS else f"{sentence[: _LETTERS - 1]}…" for sentence in sentences]
    axes.set_xticks(range(len(sentences)), shown, size=7, rotation=90, parse_math=False)
    axes.set_yticks(range(len(facts)), facts, size=7.5, parse_math=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(CELL_EDGE)
    return figure


def _named(axes: Axes, prefixes: Sequence[str], suffixes: Sequence[str]) -> None:
    axes.set_xticks(range(len(suffixes)), suffixes, size=7.5, rotation=90, parse_math=False)
    axes.set_yticks(range(len(prefixes)), prefixes, size=7.5, parse_math=False)
    axes.set_xlabel("the suffix begins with", size=8)
    axes.set_ylabel("the prefix ends with", size=8)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(CELL_EDGE)


# ----------------------------------------------------------------------------------------------------------------------
# A star graph, and the path that a model goes in it.


def star_figure(arms: Sequence[Sequence[int]], goal: int, path: Sequence[int]) -> Figure:
    """The arms around their start, the goal marked, and the path drawn thick; steps that are no edges are dashed.

    Args:
        arms: the nodes of each, from the start on.
        goal: the node that the path shall reach.
        path: the nodes that a model named, in their order; those that are not in the graph are left out.
    """
    longest = max(map(len, arms))
    places: dict[int, tuple[float, float]] = {}
    for number, arm in enumerate(arms):
        angle = np.pi / 2 - 2 * np.pi * (number + 0.5) / len(arms)
        places |= {node: (far * np.cos(angle), far * round(np.sin(angle), 9)) for far, node in enumerate(arm)}
    figure = Figure(
        figsize=(1.4 + 0.75 * longest, 1.2 + 0.7 * longest) if len(arms) > 2 else (1.4 + 1.3 * longest, 1.8)
    )
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_aspect("equal" if len(arms) > 2 else "auto")
    axes.axis("off")
    edges = {edge for arm in arms for edge in pairwise(arm)}
    for edge in edges:
        axes.plot(*zip(*(places[node] for node in edge), strict=True), color=CELL_EDGE, linewidth=1.5, zorder=1)
    for step in pairwise(node for node in path if node in places):
        right = step in edges
        axes.plot(
            *zip(*(places[node] for node in step), strict=True),
            color=OURS if right else WRONG, linewidth=4 if right else 1.5, linestyle="-" if right else "--", zorder=2,
            solid_capstyle="round",
        )  # fmt: skip
    for node, (x, y) in places.items():
        on = node in path
        axes.scatter(x, y, s=430, color=OURS if on else "white", edgecolors=OURS if on else CELL_EDGE, zorder=3)
        if node == goal:
            axes.scatter(x, y, s=640, facecolors="none", edgecolors=ACCENT, linewidths=2, zorder=3)
        axes.text(x, y, str(node), size=9, color="white" if on else INK, ha="center", va="center_baseline", zorder=4)
    axes.margins(0.18 if len(arms) > 2 else 0.08, 0.3 if len(arms) > 2 else 0.6)
    return figure
