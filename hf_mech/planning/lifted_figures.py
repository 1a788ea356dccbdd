"""A lifted domain for the eye: a picture with the actions as rows and the predicates as columns, a table of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedDomain
from hf_mech.viz.palette import ACCENT, CELL_EDGE, INK, MUTED, OURS, SHADED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE, _HIGH = 0.092, 0.27  # inches of a letter, and of a row
_GAP = 0.16
_MOST = 14.0  # inches of the columns side by side


class _Chip(NamedTuple):
    """What an action does to a predicate: one of `_KINDS`, and the parameters that stand in it."""

    kind: str
    text: str


_KINDS = {
    "needs": (INK, "needs it, and leaves it"),
    "ends": (ACCENT, "needs it, and ends it"),
    "begins": (OURS, "begins it"),
    "deletes": (MUTED, "ends it, if it holds"),
}
"""Every way in which an action can use an atom: its colour, and the words of the legend."""


class _Column(NamedTuple):
    """A predicate: its name, its types, its width in inches, and the boxes of each action."""

    name: str
    types: str
    width: float
    cells: dict[str, list[_Chip]]


def lifted_figure(domain: LiftedDomain) -> Figure:
    """The domain as a table: a coloured box where an action needs, begins or ends a predicate of the named parameters.

    Predicates stand in the order in which the actions first use them; those that no action changes are marked `static`.
    Many predicates are several tables, one below another, each of the actions that use some of its predicates.
    """
    from matplotlib.figure import Figure

    rows = {action.name: f"{action.name}({', '.join(parameter_names(action))})" for action in domain.actions}
    first = max(map(len, rows.values())) * _WIDE + _GAP
    bands = _bands(_columns(domain))
    legend = sum(len(words) + 6 for _, words in _KINDS.values()) * _WIDE * 0.8
    used = [[name for name in rows if any(c.cells[name] for c in band) or len(bands) == 1] for band in bands]
    wide = max(legend, *(first + sum(column.width for column in band) for band in bands)) + 0.4
    high = (1.5 + sum(3 + 1.6 * len(names) for names in used)) * _HIGH + 0.2
    figure = Figure(figsize=(wide, high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, wide), ylim=(high, 0))  # in inches, y downwards
    axes.axis("off")
    _legend(axes, 0.2, 0.2 + _HIGH / 2)
    y = 0.2 + 1.5 * _HIGH
    for band, names in zip(bands, used, strict=True):
        x = 0.2 + first
        for column in band:
            _say(axes, x, y + 0.6 * _HIGH, column.name, weight="bold")
            _say(axes, x, y + 1.45 * _HIGH, column.types, color=MUTED, size=8)
            x += column.width
        y += 2.2 * _HIGH
        axes.plot([0.2, wide - 0.2], [y, y], color=CELL_EDGE, linewidth=0.8)
        for number, name in enumerate(names):
            if number % 2 == 0:
                axes.axhspan(y, y + 1.6 * _HIGH, color=SHADED, zorder=0, linewidth=0)
            _say(axes, 0.2, y + 0.8 * _HIGH, rows[name], weight="bold")
            x = 0.2 + first
            for column in band:
                at = x
                for chip in column.cells[name]:
                    at = _draw(axes, at, y + 0.8 * _HIGH, chip)
                x += column.width
            y += 1.6 * _HIGH
        y += 0.8 * _HIGH
    return figure


def _columns(domain: LiftedDomain) -> list[_Column]:
    used = [atom.predicate for a in domain.actions for atoms in (a.pre, a.delete, a.add) for atom in sorted(atoms)]
    columns = []
    for name in dict.fromkeys([*used, *domain.predicates]):
        types = f"({', '.join(domain.predicates[name])})" if domain.predicates[name] else ""
        types += " static" if name in domain.static else ""
        cells = {action.name: _chips(action, parameter_names(action), name) for action in domain.actions}
        letters = max(len(name), len(types), *(sum(len(c.text) + 3 for c in chips) for chips in cells.values()), 4)
        columns.append(_Column(name, types, letters * _WIDE + _GAP, cells))
    return columns


def _bands(columns: list[_Column]) -> list[list[_Column]]:
    """The columns in groups of at most `_MOST` inches, nearly equal ones; at least one group."""
    number = max(1, math.ceil(sum(column.width for column in columns) / _MOST))
    bands: list[list[_Column]] = [[] for _ in range(number)]
    width, total = 0.0, sum(column.width for column in columns)
    for column in columns:
        bands[min(int(number * (width + column.width / 2) / total), number - 1)].append(column)
        width += column.width
    return [band for band in bands if band] or [[]]


def lifted_table(domain: LiftedDomain) -> Table:
    """The domain for a terminal: each action, what it needs, what it begins, and what it ends."""
    table = Table(title="Learned", title_justify="left", box=None, padding=(0, 2))
    for heading in ("action", "needs", "begins", "ends"):
        table.add_column(heading, overflow="fold")
    for action in domain.actions:
        names = parameter_names(action)
        texts = [
            "\n".join(f"{p}({', '.join(names[i] for i in places)})" if places else p for p, places in sorted(atoms))
            for atoms in (action.pre, action.add, action.delete)
        ]
        table.add_row(Text(f"{action.name}({', '.join(names)})", "bold"), *map(Text, texts))
    return table


def parameter_names(action: LiftedAction) -> list[str]:
    """A name for each parameter: its type, numbered where the type occurs twice."""
    names: list[str] = []
    for place, type_ in enumerate(action.parameters):
        same = [number for number, other in enumerate(action.parameters) if other == type_]
        names.append(type_ if len(same) == 1 else f"{type_}{same.index(place) + 1}")
    return names


def _chips(action: LiftedAction, names: list[str], predicate: str) -> list[_Chip]:
    """The boxes of a cell: the action's atoms of the predicate."""
    chips = []
    for atom in sorted(action.pre | action.add | action.delete):
        if atom.predicate != predicate:
            continue
        text = ", ".join(names[place] for place in atom.places) or "yes"
        if atom in action.pre and (atom not in action.delete or atom in action.add):
            chips.append(_Chip("needs", text))
        elif atom in action.delete and atom not in action.add:
            chips.append(_Chip("ends" if atom in action.pre else "deletes", text))
        if atom in action.add and atom not in action.pre:
            chips.append(_Chip("begins", text))
    return chips


def _say(axes: Axes, x: float, y: float, text: str, **how: Any) -> None:
    usual: dict[str, Any] = {"size": 9, "color": INK, "va": "center", "parse_math": False}
    axes.text(x, y, text, **usual | how)


def _draw(axes: Axes, x: float, y: float, chip: _Chip) -> float:
    """A box with its left edge at x, centred at y; returns where the next one may begin."""
    from matplotlib.patches import FancyBboxPatch

    colour = _KINDS[chip.kind][0]
    wide = (len(chip.text) + 1.5) * _WIDE
    style = "round,pad=0,rounding_size=0.06"
    filled = chip.kind in ("begins", "ends")
    axes.add_patch(
        FancyBboxPatch(
            (x, y - 0.5 * _HIGH),
            wide,
            _HIGH,
            boxstyle=style,
            facecolor=colour if filled else "white",
            edgecolor=colour,
            linewidth=1,
        )
    )
    axes.text(
        x + wide / 2,
        y,
        chip.text,
        size=8.5,
        ha="center",
        va="center",
        color="white" if filled else colour,
        parse_math=False,
    )
    return x + wide + 0.08


def _legend(axes: Axes, x: float, y: float) -> None:
    for kind, (_, words) in _KINDS.items():
        x = _draw(axes, x, y, _Chip(kind, "x"))
        _say(axes, x, y, words, size=8)
        x += len(words) * _WIDE * 0.72 + 0.2
