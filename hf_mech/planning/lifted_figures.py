"""A lifted domain for the eye: a picture with the actions as rows and the predicates as columns, a table of text."""

from __future__ import annotations

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


def lifted_figure(domain: LiftedDomain) -> Figure:
    """The domain as a table: a coloured box where an action needs, begins or ends a predicate of the named parameters.

    Predicates stand in the order in which the actions first use them; those that no action changes are marked `static`.
    """
    from matplotlib.figure import Figure

    actions = [(action, parameter_names(action)) for action in domain.actions]
    used = [atom.predicate for a, _ in actions for atoms in (a.pre, a.delete, a.add) for atom in sorted(atoms)]
    predicates = list(dict.fromkeys([*used, *domain.predicates]))
    cells = {(action.name, name): _chips(action, names, name) for action, names in actions for name in predicates}
    heads = {name: f"({', '.join(domain.predicates[name])})" if domain.predicates[name] else "" for name in predicates}
    widths = [
        max(len(name), len(heads[name]), *(sum(len(c.text) + 3 for c in cells[a.name, name]) for a, _ in actions), 4)
        * _WIDE
        + _GAP
        for name in predicates
    ]
    rows = [f"{a.name}({', '.join(names)})" for a, names in actions]
    first = max(map(len, rows)) * _WIDE + _GAP
    legend = sum(len(words) + 6 for _, words in _KINDS.values()) * _WIDE * 0.8
    size = (max(first + sum(widths), legend) + 0.4, (3.9 + 1.6 * len(actions)) * _HIGH + 0.4)
    figure = Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))  # in inches, y downwards
    axes.axis("off")
    _legend(axes, 0.2, 0.2 + _HIGH / 2)
    top = 0.2 + 1.5 * _HIGH
    lefts = [0.2 + first + sum(widths[:i]) for i in range(len(widths))]
    for left, name in zip(lefts, predicates, strict=True):
        _say(axes, left, top + 0.6 * _HIGH, name, weight="bold")
        static = " static" if name in domain.static else ""
        _say(axes, left, top + 1.45 * _HIGH, heads[name] + static, color=MUTED, size=8)
    top += 2.2 * _HIGH
    for number, (action, _) in enumerate(actions):
        y = top + (1.6 * number + 0.8) * _HIGH
        if number % 2 == 0:
            axes.axhspan(y - 0.8 * _HIGH, y + 0.8 * _HIGH, color=SHADED, zorder=0, linewidth=0)
        _say(axes, 0.2, y, rows[number], weight="bold")
        for left, name in zip(lefts, predicates, strict=True):
            x = left
            for chip in cells[action.name, name]:
                x = _draw(axes, x, y, chip)
    axes.plot([0.2, size[0] - 0.2], [top, top], color=CELL_EDGE, linewidth=0.8)
    return figure


def lifted_table(domain: LiftedDomain) -> Table:
    """The domain for a terminal: each action, what it needs, what it begins, and what it ends."""
    table = Table("action", "needs", "begins", "ends", title="Learned", title_justify="left", box=None, padding=(0, 2))
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
