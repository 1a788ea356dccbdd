"""A program's run on a prompt as one grid: the parsed cells, and the values that each production wrote.

The upper part is the paper's (36): a column a cell, a row a register. The lower part has a row for every production in
the order of the program; where it changed a register of a cell, the new value stands there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from .palette import DARK, FAINT, HAIRLINE, PASTEL_GREY, PASTELS, SOFT

_WIDTH, _HEIGHT = 0.36, 0.27  # of a cell, in inches
_LABEL = 4.15  # of the productions' names, in inches
_LONGEST_LABEL = 80


@dataclass(frozen=True)
class Cell:
    """A column.

    Args:
        values: register -> value of the state that the upper part shows; what is missing is nil.
        made: whether the program made the word, and not the prompt.
    """

    values: Mapping[str, str]
    made: bool = False


@dataclass(frozen=True)
class Writing:
    """What a production changed in one cell.

    Args:
        values: register -> new value, of those that are shown.
        repetition: in which repetition of the block around it, from 1; None outside of blocks.
    """

    values: Mapping[str, str]
    repetition: int | None = None


@dataclass(frozen=True)
class ProductionRow:
    """A production.

    Args:
        label: its name, and what it does.
        writings: column -> what it changed there; a column may have none.
        repetitions: how often the block around it ran on the prompt; None outside of blocks.
    """

    label: str
    writings: Mapping[int, Writing] = field(default_factory=dict)
    repetitions: int | None = None


def program_figure(
    cells: Sequence[Cell],
    productions: Sequence[ProductionRow],
    registers: Mapping[str, str],
    *,
    colour_by: str,
    corners: Sequence[str],
    says: str,
    neutral: Sequence[str] = (),
    title: str = "",
) -> Figure:
    """The two parts, one above the other.

    Args:
        cells: the columns.
        productions: the rows of the lower part.
        registers: short name -> long name, of the rows of the upper part.
        colour_by: the register whose value gives a cell its colour; a value that one cell alone has is grey.
        corners: up to four registers, whose new values stand upper left, upper right, lower left and lower right.
        says: the register of the words; a new word stands alone in its box.
        neutral: values of `colour_by` that are grey however many cells have them.
        title: written above.

    Raises:
        ValueError: there is no cell, or there are more than four corners.
    """
    if not cells or len(corners) > 4:
        raise ValueError(f"There must be a cell and at most 4 corners, got {len(cells)} cells and {len(corners)}.")
    colours = _colours(cells, colour_by, neutral)
    rows = len(registers) + 1.1 + len(productions)  # in cells' heights
    above, below = 1.9 if title else 0.7, 1.9
    width = _LABEL + (len(cells) + 0.4) * _WIDTH
    height = (rows + above + below) * _HEIGHT
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    left = -_LABEL / _WIDTH
    axes.set(xlim=(left, len(cells) + 0.4), ylim=(rows + below, -above))
    axes.axis("off")
    if title:
        axes.text(left + 0.4, -above + 0.75, title, size=11.5, weight="bold", va="center", color=DARK, parse_math=False)
    _draw_cells(axes, cells, registers, colours, (says, colour_by))
    _draw_productions(axes, productions, len(registers) + 1.1, len(cells), colours, corners, says)
    _draw_key(axes, left, rows + 1.05, registers, corners, any(row.repetitions for row in productions))
    return figure


def _colours(cells: Sequence[Cell], register: str, neutral: Sequence[str]) -> list[str]:
    """A colour for every value that several cells have, in the order in which they come; the others are grey."""
    chosen = dict.fromkeys(neutral, PASTEL_GREY)
    values = [cell.values.get(register, "") for cell in cells]
    for value in values:
        if value not in chosen and values.count(value) > 1:
            chosen[value] = PASTELS[(len(chosen) - len(neutral)) % len(PASTELS)]
    return [chosen.get(value, PASTEL_GREY) for value in values]


def _draw_cells(
    axes: Axes, cells: Sequence[Cell], registers: Mapping[str, str], colours: Sequence[str], strong: tuple[str, str]
) -> None:
    for row, (short, long) in enumerate(registers.items()):
        _write(axes, -0.35, row + 0.5, f"{long}  {short}", ha="right", size=8, color=DARK if short in strong else SOFT)
        for column, cell in enumerate(cells):
            tint = colours[column] if short in strong else _pale(colours[column])
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=tint, edgecolor="white", linewidth=1.2))
            look = {"size": 8.5, "weight": "bold"} if short == strong[0] else {"size": 7}
            _write(axes, column + 0.5, row + 0.52, cell.values.get(short, ""), ha="center", **look)
    made = [column for column, cell in enumerate(cells) if cell.made]
    if made:
        begin, end = made[0], made[-1] + 1
        axes.plot([begin + 0.08, end - 0.08], [-0.17, -0.17], color=SOFT, linewidth=1.1, solid_capstyle="butt")
        _write(axes, (begin + end) / 2, -0.5, "completion", ha="center", size=7, color=SOFT)
        axes.plot([0.08, begin - 0.08], [-0.17, -0.17], color=SOFT, linewidth=1.1, solid_capstyle="butt")
        _write(axes, begin / 2, -0.5, "prompt", ha="center", size=7, color=SOFT)


def _draw_productions(
    axes: Axes,
    productions: Sequence[ProductionRow],
    top: float,
    columns: int,
    colours: Sequence[str],
    corners: Sequence[str],
    says: str,
) -> None:
    places = ((0.27, 0.29), (0.73, 0.29), (0.27, 0.73), (0.73, 0.73))
    for number, production in enumerate(productions):
        y = top + number
        axes.plot([0, columns], [y + 1, y + 1], color=HAIRLINE, linewidth=0.5)
        idle = not production.writings
        _write(axes, -0.75, y + 0.52, _shortened(production.label), ha="right", size=6.8, color=FAINT if idle else DARK)
        if production.repetitions is not None:
            axes.plot([-0.45, -0.45], [y + 0.06, y + 0.94], color=SOFT, linewidth=1.6, solid_capstyle="butt")
        for column, writing in production.writings.items():
            box = FancyBboxPatch(
                (column + 0.07, y + 0.07), 0.86, 0.86, boxstyle="round,pad=0,rounding_size=0.16",
                mutation_aspect=_WIDTH / _HEIGHT, facecolor=colours[column], edgecolor="none",
            )  # fmt: skip
            axes.add_patch(box)
            if says in writing.values:
                _write(axes, column + 0.5, y + 0.52, writing.values[says], ha="center", size=8.5, weight="bold")
                continue
            alone = len(writing.values) == 1
            for register, place in zip(corners, places, strict=False):
                if register in writing.values:
                    x, lower = (0.5, 0.52) if alone else place
                    if writing.repetition is not None:
                        x -= 0.15
                    size = 6.5 if alone else 5.3
                    _write(axes, column + x, y + lower, writing.values[register], ha="center", size=size)
            if writing.repetition is not None:
                _write(axes, column + 0.78, y + 0.52, str(writing.repetition), ha="center", size=4.8, color=SOFT)
    axes.plot([0, columns], [top, top], color=HAIRLINE, linewidth=0.5)
    for column in range(columns + 1):
        axes.plot([column, column], [top, top + len(productions)], color=HAIRLINE, linewidth=0.35, zorder=0)


def _draw_key(
    axes: Axes, left: float, y: float, registers: Mapping[str, str], corners: Sequence[str], blocks: bool
) -> None:
    names = [registers.get(corner, corner) for corner in corners]
    where = ("upper left", "upper right", "lower left", "lower right")
    said = ", ".join(f"{place} {name}" for place, name in zip(where, names, strict=False))
    text = (
        f"A box: the production changed the cell. New values: {said}; in the middle where there is one alone; bold, a"
    )
    lines = [f"{text} new word. Faint names: none of these registers changed in any cell."]
    if blocks:
        lines.append("A bar before the row: in a repeat block. The small number: in which of its repetitions.")
    for line, words in enumerate(lines):
        _write(axes, left + 0.4, y + 0.55 * line * 1.2 - 0.3, words, ha="left", size=6.8, color=SOFT)


def _write(axes: Axes, x: float, y: float, text: str, **how: object) -> None:
    axes.text(x, y, text, parse_math=False, va="center", **{"color": DARK, **how})  # type: ignore[arg-type]


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1].rstrip()}…"


def _pale(colour: str) -> str:
    """Half way to white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)
