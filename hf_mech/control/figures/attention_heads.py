"""The attention of every head beside the frames of the key states (Section 5.3.1 and Figures 9 to 15 of M-SAT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hf_mech.viz.palette import ACCENT, CELL_EDGE, DARK, INK, OURS

Floats = NDArray[np.floating]

_COLOURS = LinearSegmentedColormap.from_list("attention", ["white", OURS, DARK])
_LEAST_READERS = 3  # steps after a key state


def states_read(attentions: Floats, names: Sequence[str]) -> dict[str, Floats]:
    """How much each state is read by later steps: the mean weight that their tokens give it, times their keys.

    It is 1 for a head that reads all tokens alike, wherever the state stands.

    Args:
        attentions: [layers, heads, tokens, tokens], the weights of each query's keys.
        names: of the tokens; a state's begins with s.

    Returns:
        by the state's name, [layers, heads]; states with too few steps behind them are left out.
    """
    states = [place for place, name in enumerate(names) if name.startswith("s")]
    keys = np.arange(1, len(names) + 1)
    found = {}
    for number, place in enumerate(states[: len(states) - _LEAST_READERS]):
        later = states[number + 1] - 1  # the next step begins with its return-to-go
        found[names[place]] = (attentions[:, :, later:, place] * keys[later:]).mean(-1)
    return found


def key_states(attentions: Floats, names: Sequence[str], count: int = 5) -> list[str]:
    """The names of the states that some head reads most, in the order of the episode."""
    read = states_read(attentions, names)
    most = sorted(read, key=lambda name: float(read[name].max()), reverse=True)[:count]
    return [name for name in read if name in most]


def heads_figure(
    attentions: Floats, names: Sequence[str], marked: Sequence[str], frames: Mapping[str, NDArray[np.uint8]]
) -> Figure:
    """A map for each head, a row a layer, with the key states marked, and under them the frames of these states.

    Args:
        attentions: [layers, heads, tokens, tokens]. A row of a map is a token that reads.
        names: of the tokens.
        marked: the names of the key states.
        frames: by the name of their state, [height, width, 3]; none if observations are vectors.
    """
    layers, heads = attentions.shape[:2]
    columns = max(heads, len(frames))
    figure = Figure(figsize=(1.75 * columns + 0.6, 1.75 * layers + 0.5 + (1.5 if frames else 0)), layout="constrained")
    grid = figure.add_gridspec(2 if frames else 1, 1, height_ratios=[1.75 * layers, 1.4] if frames else None)
    above = figure.add_subfigure(grid[0, 0])
    for (layer, head), axes in np.ndenumerate(above.subplots(layers, heads, squeeze=False)):
        _draw_map(axes, attentions[layer, head], names, marked)
        axes.set_title(f"layer {layer}, head {head}", size=7.5, color=INK)
    if frames:
        below = figure.add_subfigure(grid[1, 0]).subplots(1, len(frames), squeeze=False)[0]
        for axes, (name, frame) in zip(below, frames.items(), strict=True):
            axes.imshow(frame, interpolation="nearest", gid=f"frame-{name}")  # dark pages do not invert it
            axes.set_title(name, size=9, color=ACCENT)
            _bare(axes, ACCENT)
    return figure


def _draw_map(axes: Axes, weights: Floats, names: Sequence[str], marked: Sequence[str]) -> None:
    """One head: queries down, keys to the right, blank where a key is later than the query."""
    blank = np.ma.masked_where(~np.tri(len(names), dtype=bool), weights)
    axes.imshow(blank, cmap=_COLOURS, norm=PowerNorm(0.5, 0, 1), interpolation="nearest")
    places = [names.index(name) for name in marked]
    for place in places:
        axes.axvline(place, ymax=1 - place / len(names), color=ACCENT, linewidth=0.5, alpha=0.6)
    axes.set_xticks(places, marked, size=6, color=ACCENT, rotation=90)
    axes.set_yticks([])
    axes.tick_params(length=0, pad=1)
    for spine in axes.spines.values():
        spine.set_color(CELL_EDGE)


def _bare(axes: Axes, colour: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(colour)
