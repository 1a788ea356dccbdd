"""Figures of control: attention over a context, films of episodes, returns over training."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from hf_mech.viz.palette import ACCENT, CELL_EDGE, DARK, INK, LONG_CYCLE, OURS, PAPER, style

# ----------------------------------------------------------------------------------------------------------------------
# The attention of every head beside the frames of the key states (Section 5.3.1 and Figures 9 to 15 of M-SAT).


Floats = NDArray[np.floating]

_COLOURS = LinearSegmentedColormap.from_list("attention", ["white", OURS, DARK])
_LEAST_READERS = 3  # states with fewer steps behind them are left out


def states_read(attentions: Floats, names: Sequence[str]) -> dict[str, Floats]:
    """How much later steps read each state: the mean over their tokens of its weight times the number of keys they see.

    It is 1 for a head that reads all tokens alike, wherever the state stands.

    Args:
        attentions: [layers, heads, tokens, tokens], the weights of each query's keys.
        names: of the tokens; a state's begins with s.

    Returns:
        [layers, heads] by the state's name; states with too few steps behind them are left out.
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


# ----------------------------------------------------------------------------------------------------------------------
# The attention of every head as an interactive page, by CircuitsVis, as in the paper (Appendix 7.6 of M-SAT).
#
# The page holds its script, so it opens without a network. CircuitsVis has few releases: it is an extra that nothing
# else needs, and `heads_figure` draws the same heads without it.


_DIGITS = 3  # of a weight in the page
_DARKEST = 0.98  # the share of the weights that are lighter than the darkest colour
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family: sans-serif; margin: 2em">
<h1 style="font-size: 1.2em">{title}</h1>
<p>{text}</p>
<p>Point at a head to see it, and click to keep it. A row (destination) is a token that reads, a column (source) a token
that is read; point at a cell to see its weight. The darkest cells are weights of {darkest:.2g} or more.</p>
{heads}
</body>
</html>
"""


def attention_page(attentions: NDArray[np.floating], names: Sequence[str], title: str, text: str = "") -> str:
    """A page in HTML: a small map of every head, and a large one of the chosen head, whose cells show their weights.

    The weights of a long context are small, so the darkest colour does not stand for 1 but for a weight that one cell
    in fifty reaches; the page says which.

    Args:
        attentions: [layers, heads, tokens, tokens], the weights of each query's keys.
        names: of the tokens, such as `config.token_names(...)`: r17, s17, a1_17, ...
        title, text: above the heads; plain text.

    Raises:
        ImportError: circuitsvis is not installed.
        ValueError: another number of names than of tokens.
    """
    if attentions.ndim != 4 or attentions.shape[2:] != (len(names), len(names)):
        raise ValueError(
            f"attentions must be [layers, heads, tokens, tokens] with {len(names)} tokens, one for each name, got "
            f"{list(attentions.shape)}."
        )
    try:
        from circuitsvis.attention import attention_heads
    except ModuleNotFoundError as error:
        raise ImportError("circuitsvis is not installed. Run: pip install 'hf-mech[attention]'") from error
    from html import escape

    layers, heads = attentions.shape[:2]
    darkest = float(np.quantile(attentions[:, :, np.tri(len(names), dtype=bool)], _DARKEST))
    shown = attention_heads(
        # In float64: the digits of a rounded float32 are many.
        attentions.reshape(layers * heads, *attentions.shape[2:]).astype(np.float64).round(_DIGITS).tolist(),
        list(names),
        [f"L{layer}H{head}" for layer in range(layers) for head in range(heads)],
        max_value=darkest,
        mask_upper_tri=True,
    )
    return _PAGE.format(title=escape(title), text=escape(text), darkest=darkest, heads=shown.local_src)


# ----------------------------------------------------------------------------------------------------------------------
# An episode as an animated GIF.


_GIF_COLOURS = 128
_FRAMES_SAMPLED = 12  # for the palette


def film(pictures: NDArray[np.uint8], frames_per_second: float = 35 / 4, scale: int = 1) -> bytes:
    """The file of a GIF that repeats itself; the last picture stays for a second.

    Args:
        pictures: [frames, height, width, 3].
        frames_per_second: by default ViZDoom's 35, four to a decision; a GIF's frame lasts a multiple of 10 ms.
        scale: a pixel becomes a square of so many pixels to a side.

    Raises:
        ValueError: no pictures.
    """
    if len(pictures) == 0:
        raise ValueError("A film needs pictures, got none; make the environment with render_mode='rgb_array'.")
    pictures = pictures.repeat(scale, 1).repeat(scale, 2)
    # One palette for all frames: a GIF stores what changes, and colours that flicker change.
    some = pictures[np.linspace(0, len(pictures) - 1, min(_FRAMES_SAMPLED, len(pictures))).astype(int)]
    palette = Image.fromarray(some.reshape(-1, *some.shape[2:])).quantize(_GIF_COLOURS)
    frames = [Image.fromarray(one).quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    each = round(100 / frames_per_second) * 10
    written = io.BytesIO()
    frames[0].save(
        written,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[each] * (len(frames) - 1) + [1_000],
        loop=0,
        optimize=False,
    )
    return written.getvalue()


# ----------------------------------------------------------------------------------------------------------------------
# Returns of played episodes: over the training (Figure 3 of M-SAT), and of all models with intervals (Tables 2, 3).


Points = Sequence[tuple[float, float]]


def return_curves(curves: Mapping[str, Sequence[Points]], data: float, *, unit: str = "return") -> Figure:
    """A line a model: the mean over the seeds by training step, between the least and the largest.

    Args:
        curves: by model, for each seed the pairs of step and value.
        data: the mean of the training episodes, dashed.
        unit: the name of the value.
    """
    figure = Figure(figsize=(5.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, (model, seeds) in enumerate(curves.items()):
        shared = min((len(points) for points in seeds), default=0)
        if not shared:
            continue
        steps = [step for step, _ in seeds[0][:shared]]
        values = np.array([[value for _, value in points[:shared]] for points in seeds])
        colour = LONG_CYCLE[number % len(LONG_CYCLE)]
        axes.plot(steps, values.mean(0), ".-", color=colour, linewidth=1.3, label=model)
        axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
    _data_line(axes, data, horizontal=True)
    low, high = axes.get_ylim()
    low = min(0.0, low)
    axes.set_ylim(low, high + 0.05 * (high - low))
    axes.set_xlabel("training step", size=8)
    axes.set_ylabel(unit, size=8)
    style(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


def intervals_figure(
    values: Mapping[str, Sequence[float]], intervals: Mapping[str, tuple[float, float]], data: float, unit: str
) -> Figure:
    """A row a model: a point a seed, the mean, and its interval.

    Args:
        values: by model, one a seed.
        intervals: by model, the ends of the mean's interval; models of one seed have none.
        data: the mean of the training episodes, dashed.
        unit: the name of the value.
    """
    figure = Figure(figsize=(5.4, 0.9 + 0.36 * len(values)), layout="constrained")
    axes = figure.subplots()
    for place, (model, own) in enumerate(values.items()):
        colour = LONG_CYCLE[place % len(LONG_CYCLE)]
        if model in intervals:
            axes.plot(intervals[model], [place, place], color=colour, linewidth=1.6)
        axes.plot(own, [place] * len(own), ".", color=INK, markersize=3.5)
        axes.plot([float(np.mean(own))], [place], "o", color=colour, markersize=6)
    _data_line(axes, data, horizontal=False)
    axes.set_yticks(range(len(values)), list(values), size=8)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlabel(unit, size=8)
    style(axes, grid="x")
    return figure


def _data_line(axes: Axes, data: float, *, horizontal: bool) -> None:
    draw = axes.axhline if horizontal else axes.axvline
    draw(data, color=PAPER, linewidth=0.9, linestyle="--", label="training episodes")
