"""Probes of states: how well small networks read tokens from them, at the end and over the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hf_mech.viz.palette import LONG_CYCLE, style


def probes_figure(
    path: Mapping[str, Sequence[float]],
    graph: Mapping[str, Sequence[float]],
    steps: Sequence[int],
    learning: Sequence[Sequence[float]],
    learner: str,
) -> Figure:
    """Three panels: the path's nodes by model, their accuracy over one model's training, and the prompt's edges.

    Args:
        path: by model, the probe accuracy of each node of the path.
        graph: by model, that of each node of the prompt's edges, in the prompt's order.
        steps: at which probes were trained.
        learning: at each of them, the accuracy of each node of the path, for the learner.
        learner: the model's name.
    """
    figure = Figure(figsize=(8.2, 5.4), layout="constrained")
    panels = figure.subplot_mosaic([["path", "learning"], ["graph", "graph"]])
    nodes = range(1, 1 + len(next(iter(path.values()))))
    _grouped(panels["path"], path, [f"$n_{{{number}}}$" for number in nodes])
    panels["path"].set_title("nodes of the path", size=9)
    for number, colour in zip(nodes, _colours(len(nodes)), strict=True):
        values = [moment[number - 1] for moment in learning]
        panels["learning"].plot(steps, values, color=colour, linewidth=1.3, label=f"$n_{{{number}}}$")
    panels["learning"].set_title(f"over the training, {learner}", size=9)
    panels["learning"].set_xlabel("training step", size=8)
    panels["learning"].legend(frameon=False, fontsize=7, ncols=2)
    places = range(1, 1 + len(next(iter(graph.values()))))
    _grouped(panels["graph"], graph, [str((place + 1) // 2) if place % 2 else "" for place in places])
    panels["graph"].set_title("nodes of the prompt's edges", size=9)
    panels["graph"].set_xlabel("edge", size=8)
    for axes in panels.values():
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("probe accuracy", size=8)
        style(axes)
    handles, labels = panels["path"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", frameon=False, fontsize=8, ncols=len(path))
    return figure


def _grouped(axes: Axes, bars: Mapping[str, Sequence[float]], labels: Sequence[str]) -> None:
    width = 0.8 / len(bars)
    for number, (model, values) in enumerate(bars.items()):
        places = [place + (number - (len(bars) - 1) / 2) * width for place in range(len(values))]
        axes.bar(places, values, width=width, color=LONG_CYCLE[number % len(LONG_CYCLE)], label=model)
    axes.set_xticks(range(len(labels)), labels)


def _colours(count: int) -> list[str]:
    return [LONG_CYCLE[number % len(LONG_CYCLE)] for number in range(count)]
