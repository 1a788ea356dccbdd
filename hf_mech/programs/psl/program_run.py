"""A program's run on one prompt as plain data: what the page draws, and what is written into it as JSON.

Registers, values and rows are stored once and named by their index. The state of a cell after a row is its first state
with the changes of all rows so far.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from hf_mech.viz.page import whole_page

_PAGE = Path(__file__).parent / "pages" / "program"

State = Mapping[str, str | None]
"""Register -> value, None for nil."""

Attribute = Literal["query", "key", "value"]


@dataclass(frozen=True)
class Register:
    """A state variable: its name, its short name in QKVL, and whether the program watches it."""

    name: str
    short: str
    watched: bool


@dataclass(frozen=True)
class WeightBlock:
    """A block of a layer's weights, (72): `scale * matrix + shift * ones`.

    Args:
        attribute: the affine map.
        target: the register that the block writes; primed names are registers of queries and keys only.
        source: the register that it reads; None for a bias.
        matrix: `I` (identity), a function's name, or the constants whose neurons are 1 in a bias.
        scale, shift: the two numbers.
    """

    attribute: Attribute
    target: str
    source: str | None
    matrix: str
    scale: float
    shift: float


@dataclass(frozen=True)
class ProgramLayer:
    """A production.

    Args:
        number: from 1, in the program's order.
        comment: its comment; may be empty.
        text: its PSL, without the indentation; empty if the program's text is not known.
        line: the line of the text where it begins; 0 if that is not known.
        qkvl: the production-dictionary of App. J.
        blocks: its weights.
    """

    number: int
    comment: str
    text: str
    line: int
    qkvl: Mapping[str, Any]
    blocks: Sequence[WeightBlock]


@dataclass(frozen=True)
class Row:
    """A layer of the unrolled run; `repetitions` has those of the enclosing repeat blocks from 1, outermost first."""

    layer: int
    repetitions: tuple[int, ...]


@dataclass(frozen=True)
class LayerStep:
    """The update of a group of cells by one row.

    Args:
        row: the row.
        cells: the states after it.
        reads: the cell that each one read, from 0 among all cells; None if no cell matched.
    """

    row: Row
    cells: Sequence[State]
    reads: Sequence[int | None]


@dataclass(frozen=True)
class CellGroup:
    """Cells that are updated together: those of the prompt, or one generated cell.

    Args:
        first: their states before the first layer.
        steps: their updates, in order.
    """

    first: Sequence[State]
    steps: Sequence[LayerStep]


@dataclass(frozen=True)
class ProgramRun:
    """A run.

    Args:
        program: the program's name.
        text: its PSL; empty if it is not known.
        prompt, completion: the words.
        ended: whether the program ended the completion itself; False if a bound cut it.
        symbol, position: the names of the registers that hold a cell's word and its position.
        registers: the state variables.
        layers: the productions.
        groups: the prompt's cells, then each generated cell. The last word may have none.
        qkvl: the program as the JSON of App. J.
        sizes: the network's sizes by their names, for the page.
    """

    program: str
    text: str
    prompt: Sequence[str]
    completion: Sequence[str]
    ended: bool
    symbol: str
    position: str
    registers: Sequence[Register]
    layers: Sequence[ProgramLayer]
    groups: Sequence[CellGroup]
    qkvl: Mapping[str, Any]
    sizes: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and lists.

        `values` lists every value, nil first as null; a `change` is [cell, register, value] by their indices, cells
        counted in their group; `reads` maps a cell to the cell it read, among all cells, and lacks cells without a
        match; `rows` has all rows that any group ran, in the order of the program.
        """
        rows = sorted({step.row for group in self.groups for step in group.steps}, key=_order(self.qkvl["weights"]))
        index_of = {row: index for index, row in enumerate(rows)}
        values = _Values()
        names = [register.name for register in self.registers]
        return {
            "program": self.program,
            "text": self.text,
            "prompt": list(self.prompt),
            "completion": list(self.completion),
            "ended": self.ended,
            "symbol": names.index(self.symbol),
            "position": names.index(self.position),
            "registers": [asdict(register) for register in self.registers],
            "layers": [asdict(layer) for layer in self.layers],
            "rows": [asdict(row) for row in rows],
            "groups": [self._group(group, names, index_of, values) for group in self.groups],
            "values": values.known,
            "qkvl": dict(self.qkvl),
            "sizes": dict(self.sizes),
        }

    @staticmethod
    def _group(group: CellGroup, names: Sequence[str], index_of: Mapping[Row, int], values: _Values) -> dict[str, Any]:
        steps, before = [], group.first
        for step in group.steps:
            changes = [
                [cell, place, values.index(new[name])]
                for cell, (old, new) in enumerate(zip(before, step.cells, strict=True))
                for place, name in enumerate(names)
                if new[name] != old[name]
            ]
            reads = {str(cell): read for cell, read in enumerate(step.reads) if read is not None}
            steps.append({"row": index_of[step.row], "changes": changes, "reads": reads})
            before = step.cells
        return {"first": [[values.index(cell[name]) for name in names] for cell in group.first], "steps": steps}

    def dumps(self) -> str:
        """The JSON as one line of text."""
        return json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":"))


class _Values:
    """The values in order of appearance; nil is 0."""

    def __init__(self) -> None:
        self.known: list[str | None] = [None]
        self._indices: dict[str | None, int] = {None: 0}

    def index(self, value: str | None) -> int:
        if value not in self._indices:
            self._indices[value] = len(self.known)
            self.known.append(value)
        return self._indices[value]


class _order:
    """The key that sorts rows as the program runs them: repetition by repetition in every block.

    Args:
        weights: the statements of the program, as in App. J's JSON.
    """

    def __init__(self, weights: Sequence[Mapping[str, Any]]) -> None:
        self.places: list[tuple[int, ...]] = []  # of every layer: its place in each enclosing list, outermost first
        self._walk(weights, ())

    def _walk(self, statements: Sequence[Mapping[str, Any]], outer: tuple[int, ...]) -> None:
        for place, statement in enumerate(statements):
            if isinstance(statement["weights"], list):
                self._walk(statement["weights"], (*outer, place))
            else:
                self.places.append((*outer, place))

    def __call__(self, row: Row) -> tuple[int, ...]:
        *blocks, last = self.places[row.layer - 1]
        # In a block: its place, then the repetition, then the place in the block.
        return (*(part for pair in zip(blocks, row.repetitions, strict=True) for part in pair), last)


def program_page(run: ProgramRun) -> str:
    """The page of a program's run: its layers by its cells, the generation step by step, QKVL and weights."""
    title = f"{run.program}: {' '.join(run.prompt)} → {' '.join(run.completion)}"
    html, style, script = (_PAGE.with_suffix(end).read_text(encoding="utf-8") for end in (".html", ".css", ".js"))
    return whole_page(title, html, style, script, run.dumps())
