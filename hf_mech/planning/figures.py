"""A learned STRIPS domain beside the hidden one, differences coloured (STRIPS Transformer paper, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray
from rich.columns import Columns
from rich.text import Text

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.viz.palette import CELL_EDGE, INK, MISSING, OURS, PAPER, WRONG, WRONG_FILL, style

Status = Literal["same", "excess", "missing"]
Segment = tuple[str, Status]
Line = list[Segment]

COLOURS: dict[Status, str] = {"same": INK, "excess": WRONG, "missing": MISSING}
"""As in the paper: red for surplus parts of the learned domain, grey for missing parts."""

_SIZE = 9.0  # points
_WIDE, _HIGH = 0.64 * _SIZE / 72, 1.42 * _SIZE / 72  # inches that a character takes, pixels rounded up


@dataclass(frozen=True)
class _Part:
    """One list of an action, and its text."""

    label: str

    def of(self, action: StripsAction) -> frozenset[str]:
        return {"pre": action.pre, "add": action.add, "del": action.delete}[self.label]


_PARTS = tuple(map(_Part, ("pre", "add", "del")))


def rename_like(learned: StripsDomain, hidden: StripsDomain) -> StripsDomain:
    """The learned domain with its propositions named and ordered like the most similar ones of the hidden domain.

    The matching is exact: no other has fewer differences in preconditions, adds and deletes. Surplus propositions come
    last and keep their names, with a prime if the hidden domain has the same name.
    """
    import networkx  # type: ignore[import-untyped]  # comes with torch

    graph = networkx.Graph()
    ours = dict(zip(learned.action_names, learned.actions, strict=True))
    for p, q in product(range(len(learned.propositions)), range(len(hidden.propositions))):
        differences = sum(
            (learned.propositions[p] in part.of(ours[a.name])) != (hidden.propositions[q] in part.of(a))
            for a in hidden.actions
            if a.name in ours
            for part in _PARTS
        )
        graph.add_edge(("learned", p), ("hidden", q), weight=-differences)
    names: dict[str, str] = {}
    for pair in networkx.max_weight_matching(graph, maxcardinality=True):
        (_, q), (_, p) = sorted(pair)  # "hidden" sorts before "learned"
        names[learned.propositions[p]] = hidden.propositions[q]
    taken = set(hidden.propositions)
    for p_name in learned.propositions:
        if p_name not in names:
            fresh = p_name
            while fresh in taken:
                fresh += "'"
            names[p_name] = fresh
            taken.add(fresh)

    def renamed(propositions: frozenset[str]) -> frozenset[str]:
        return frozenset(names[p] for p in propositions)

    order = [*hidden.propositions, *names.values()]
    return StripsDomain(
        tuple(sorted(names.values(), key=order.index)),
        tuple(StripsAction(a.name, renamed(a.pre), renamed(a.add), renamed(a.delete)) for a in learned.actions),
        learned.name,
    )


def compare(learned: StripsDomain, hidden: StripsDomain) -> list[Line]:
    """The learned domain as lines of text, each in pieces marked "same", "excess" or "missing"; names as they are."""
    theirs = dict(zip(hidden.action_names, hidden.actions, strict=True))
    order = list(dict.fromkeys([*hidden.propositions, *learned.propositions]))

    def marked(ours: frozenset[str], expected: frozenset[str]) -> Line:
        names = sorted(ours | expected, key=order.index)
        line: Line = []
        for name in names:
            status: Status = "same" if name in ours & expected else "excess" if name in ours else "missing"
            line += [(", ", "same")] if line else []
            line.append((name, status))
        return line

    atoms = marked(frozenset(learned.propositions), frozenset(hidden.propositions))
    lines: list[Line] = [[("Atoms: ", "same"), *atoms], [("Actions:", "same")]]
    for action in learned.actions:
        other = theirs.get(action.name, StripsAction(action.name))
        lines.append([(f"  {action.name}", "same" if action.name in theirs else "excess")])
        for part in _PARTS:
            lines.append([(f"    {part.label} = [", "same"), *marked(part.of(action), part.of(other)), ("]", "same")])
    for name in hidden.action_names:
        if name not in learned.action_names:
            lines.append([(f"  {name}", "missing")])
    return lines


def domains_figure(
    hidden: StripsDomain, learned: StripsDomain, *, title_hidden: str = "Hidden domain", title_learned: str = "Learned"
) -> Figure:
    """Figure 2: the hidden domain on the left, the learned one, its propositions renamed to match, on the right."""
    columns = [
        (title, [piece for line in lines for piece in _wrap(line)])
        for title, lines in (
            (title_hidden, compare(hidden, hidden)),
            (title_learned, compare(rename_like(learned, hidden), hidden)),
        )
    ]
    widths = [max(len(title) + 2, *(_length(line) for line in lines)) for title, lines in columns]
    legend: Line = [("red: learned, not hidden", "excess"), ("   ", "same"), ("grey: hidden, not learned", "missing")]
    figure = Figure(
        figsize=(
            max(sum(widths) + 4, _length(legend)) * _WIDE + 0.5,
            (max(len(lines) for _, lines in columns) + 3) * _HIGH + 0.3,
        )
    )
    figure.add_axes((0, 0, 1, 1)).axis("off")  # a notebook shows no figure without axes
    left, top = 0.25, figure.get_figheight() - 0.3
    for (title, lines), wide in zip(columns, widths, strict=True):
        _write(figure, left, top, [(title, "same")], bold=True)
        for number, line in enumerate(lines):
            _write(figure, left, top - (number + 1.5) * _HIGH, line)
        left += (wide + 4) * _WIDE
    _write(figure, 0.25, 0.12, legend)
    return figure


def domains_text(
    hidden: StripsDomain, learned: StripsDomain, *, title_hidden: str = "Hidden domain", title_learned: str = "Learned"
) -> Columns:
    """The same for a terminal: `rich.print(domains_text(hidden, learned))`. Missing parts are also struck through."""
    columns = []
    for title, lines in (
        (title_hidden, compare(hidden, hidden)),
        (title_learned, compare(rename_like(learned, hidden), hidden)),
    ):
        text = Text(title + "\n", style="bold")
        for line in lines:
            for piece, status in line:
                text.append(piece, style={"same": "not bold", "excess": "bold red", "missing": "dim strike"}[status])
            text.append("\n")
        columns.append(text)
    return Columns(columns, padding=(0, 4))


def _length(line: Line) -> int:
    return sum(len(text) for text, _ in line)


def _wrap(line: Line, most: int = 60) -> list[Line]:
    """The line, broken after commas if it is longer than `most` characters; later lines are indented."""
    lines: list[Line] = [[]]
    for text, status in line:
        if lines[-1] and _length(lines[-1]) + len(text) > most and text not in (", ", "]"):
            lines.append([(" " * len(line[0][0]), "same")])
        lines[-1].append((text, status))
    return lines


def _write(figure: Figure, x: float, y: float, line: Line, bold: bool = False) -> None:
    """A line with its left baseline at (x, y) inches from the lower left corner.

    Each colour is one text with blanks instead of the others, so rounding to pixels moves all colours equally.
    """
    width, height = figure.get_size_inches()
    for status, colour in COLOURS.items():
        text = "".join(piece if piece_status == status else " " * len(piece) for piece, piece_status in line)
        if text.strip():
            figure.text(
                x / width,
                y / height,
                text.rstrip(),
                color=colour,
                family="DejaVu Sans Mono",
                size=_SIZE,
                weight="bold" if bold else "normal",
                parse_math=False,
            )


# The attention of each head of a STRIPS Transformer on a trace (STRIPS Transformer paper, Figure 3).


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


# Test accuracy against the number of training traces, ours and the paper's (STRIPS Transformer paper, Table 1).


@dataclass(frozen=True)
class Point:
    """One training-set size: the accuracy of every seed, and the paper's mean and standard deviation, if any."""

    size: int
    values: tuple[float, ...]
    paper_mean: float | None = None
    paper_std: float | None = None


def curves_figure(curves: Mapping[str, Sequence[Point]], *, per_row: int = 3, label: str = "test accuracy") -> Figure:
    """A panel a domain: every seed a dot, their mean a line; the paper's mean and standard deviation dashed."""
    columns = min(per_row, max(len(curves), 1))
    rows = max(-(-len(curves) // columns), 1)
    figure = Figure(figsize=(2.9 * columns, 2.35 * rows + 0.35), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    lowest = min((v for points in curves.values() for p in points for v in _extent(p)), default=0.0)
    for number, axes in enumerate(panels.flat):
        if number >= len(curves):
            axes.axis("off")
            continue
        name, points = list(curves.items())[number]
        _draw_curve(axes, points)
        axes.set_title(name, size=9, weight="bold", loc="left")
        axes.set_ylim(max(0.0, np.floor(lowest * 20 - 0.3) / 20), 1.015)
        if number % columns == 0:
            axes.set_ylabel(label, size=8)
        if number + columns >= len(curves):
            axes.set_xlabel("training traces", size=8)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _extent(point: Point) -> list[float]:
    paper = [] if point.paper_mean is None else [point.paper_mean - (point.paper_std or 0.0)]
    return [*point.values, *paper]


def _draw_curve(axes: Axes, points: Sequence[Point]) -> None:
    published = [(p.size, p.paper_mean, p.paper_std or 0.0) for p in points if p.paper_mean is not None]
    if published:
        sizes, means, stds = zip(*published, strict=True)
        axes.errorbar(
            sizes, means, stds, color=PAPER, linestyle="--", linewidth=1.1, capsize=2, marker="s", ms=3, label="paper"
        )
    for point in points:
        axes.plot([point.size] * len(point.values), point.values, ".", color=OURS, ms=5, alpha=0.3, mew=0)
    measured = [p for p in points if p.values]
    axes.plot(
        [p.size for p in measured],
        [np.mean(p.values) for p in measured],
        color=OURS,
        marker="o",
        ms=3.5,
        linewidth=1.5,
        label="ours (mean; dots: seeds)",
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([p.size for p in points]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    style(axes)
