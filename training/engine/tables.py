"""Tables of results: the same rows as Markdown and, laid out by rich, in the terminal.

tabulate pads the cells of Markdown: one longer figure would change every line of a committed table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.markdown import Markdown

_WIDTH = 170  # of a terminal that does not say how wide it is


@dataclass
class Table:
    """A table.

    Args:
        columns: heads; one that begins with `>` is of numbers and stands on the right.
        rows: texts, as many as there are columns.
        notes: lines under the table.
    """

    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def without_empty_columns(self) -> Table:
        """The table without the columns that are empty in every row.

        >>> Table(["task", "stack"], [["reverse", ""]]).without_empty_columns().columns
        ['task']
        """
        kept = [place for place, _ in enumerate(self.columns) if any(row[place] for row in self.rows)]
        rows = [[row[place] for place in kept] for row in self.rows]
        return Table([self.columns[place] for place in kept], rows, self.notes)

    def markdown(self) -> str:
        """The table in Markdown; empty if it has no row.

        >>> print(Table(["task", ">steps"], [["reverse", "4,000"]]).markdown())
        | task | steps |
        |---|---:|
        | reverse | 4,000 |
        """
        if not self.rows:
            return ""
        heads = [column.removeprefix(">") for column in self.columns]
        lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---:' if c[0] == '>' else '---' for c in self.columns)}|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([*lines, *(["", *self.notes] if self.notes else [])])


def print_markdown(text: str) -> None:
    """Prints Markdown in the terminal."""
    console = Console()
    Console(width=console.width if console.is_terminal else _WIDTH).print(Markdown(text))


def percent(figure: object, *, spread: bool = True) -> str:
    """A share in per cent, with its standard deviation if there is one; empty for None.

    Args:
        figure: a [`Measurement`] or a [`PaperFigure`].
        spread: whether a figure of one value also has its standard deviation.
    """
    return _written(figure, 100, spread)


def number(figure: object, *, spread: bool = True) -> str:
    """The same for a figure that is not a share."""
    return _written(figure, 1, spread)


def _written(figure: object, scale: float, spread: bool) -> str:
    mean, std = getattr(figure, "mean", None), getattr(figure, "std", None)
    if mean is None:
        return ""
    return f"{scale * mean:.1f}" + (f" ± {scale * (std or 0):.1f}" if spread else "")


def departures_in_words(departures: Mapping[str, object]) -> str:
    """How a setting departs from its preset.

    >>> departures_in_words({"steps": 6000, "layers": 10})
    'steps 6000, layers 10'
    """
    return ", ".join(f"{name} {value}" for name, value in departures.items())


def steps_in_words(steps: Iterable[int]) -> str:
    """The steps of several runs: one number if all did as many, else the fewest and the most.

    >>> steps_in_words([900, 1000, 950])
    '900 to 1,000'
    """
    steps = list(steps)
    return " to ".join(f"{number:,}" for number in sorted({min(steps), max(steps)}))
