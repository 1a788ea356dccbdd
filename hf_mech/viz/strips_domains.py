"""A learned STRIPS domain beside the hidden one, differences coloured (STRIPS Transformer paper, Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

from matplotlib.figure import Figure
from rich.columns import Columns
from rich.text import Text

from ..models.strips.strips_domain import StripsAction, StripsDomain
from .palette import INK, MISSING, WRONG

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
