"""Runs a program row by row on plain integers: what `dat_machine.Machine` does with tensors, for few cells.

A tensor operation costs as much for one cell as for a thousand. A new word of one row asks most layers one question,
whose answer is no, so here it costs less than the operations that would put the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .dat_backend_gather import GatherBackend
from .dat_errors import DATRepeatError
from .dat_history import History
from .dat_program import Block, Statement
from .dat_row_layer import RowLayer, View
from .dat_rows import Columns, Line, Path, RowCells, RowGroup
from .dat_values import FIRST_NUMBER, UNDEFINED, UNSET

FEW_CELLS = 512
"""So many cells of prompts are run row by row, at the default sizes any prompt alone; with more, tensors are faster."""


def few_cells(symbols: Tensor) -> bool:
    """Whether prompts [batch, length] are run row by row: those of few cells, outside an accelerator."""
    return symbols.device.type == "cpu" and symbols.numel() <= FEW_CELLS


_Heads = tuple[RowLayer, ...]  # the productions of a layer: one, or several as heads, (90a)


@dataclass(frozen=True)
class _Repeat:
    """A repeat block; `until` is None for NO_CHANGE."""

    body: tuple[_Heads | _Repeat, ...]
    until: RowLayer | None
    block: Block


class RowMachine:
    """A program, see `dat_machine.Machine`; it keeps no records.

    Args:
        gather: the same program on tensors.
    """

    def __init__(self, gather: GatherBackend):
        self.program, self.end = gather.program, gather.end
        functions = {}
        for name, table in gather.tables.items():
            values = table.tolist()
            functions[name] = {value: image for value, image in enumerate(values) if image != UNDEFINED}

        def made(statement: Statement) -> _Heads | _Repeat:
            if not isinstance(statement, Block):
                heads = zip(statement.heads, gather.plans[statement.index], strict=True)
                return tuple(
                    RowLayer(plan, functions, head.right_match, head.causal, head.writes, number)
                    for number, (head, plan) in enumerate(heads)
                )
            until = None if statement.until is None else RowLayer(gather.conditions[statement.until], functions)
            return _Repeat(tuple(map(made, statement.body)), until, statement)

        self.statements = tuple(map(made, self.program.statements))

    def read_prompt(self, symbols: Tensor, exists: Tensor, given: Mapping[int, Tensor]) -> RowGroup:
        """Processes prompts, (70); the arguments are those of `dat_machine.Machine.read_prompt`."""
        first = {register: values.tolist() for register, values in given.items()}
        rows = []
        for row, (words, count) in enumerate(zip(symbols.tolist(), exists.sum(1).tolist(), strict=True)):
            line = Line()
            line.groups.append(RowCells(line, 0, count))
            own = {register: values[row][:count] for register, values in first.items()}
            self._run(line.groups[0], self._begin(words[:count], own))
            rows.append(line.groups[0])
        return RowGroup(rows, rows, symbols.shape[1])

    def read_word(self, symbols: Tensor, exists: Tensor, history: History[RowGroup]) -> RowGroup:
        """Processes one further cell of each row that has one, (71): `symbols` and `exists` are [batch, 1]."""
        pairs = zip(symbols.tolist(), exists.tolist(), strict=True)
        return self.read_values([word if real else None for (word,), (real,) in pairs], history.groups[-1])

    def read_values(self, words: Sequence[int | None], before: RowGroup) -> RowGroup:
        """The same for plain integers, None for a row without a further cell; `before` is the last group."""
        rows: list[RowCells | None] = []
        last = list(before.last)
        for row, word in enumerate(words):
            rows.append(None)
            if word is not None:
                registers = [[column[-1]] for column in last[row].final]
                rows[row] = last[row] = last[row].next()
                self._run(last[row], self._place(registers, [word], last[row].first))
        return RowGroup(rows, last, 1)

    def _begin(self, words: list[int], given: Mapping[int, list[int]]) -> Columns:
        """The registers of a prompt's cells at the first layer, (70b)."""
        count, parts = len(words), self.program.parts
        nothing = [0] * count
        registers = [nothing] * len(self.program.registers)
        for register, value in self.program.initial.items():
            registers[register] = [value] * count
        if self.end is not None:
            registers[parts["eop"]] = [*registers[parts["eop"]][:-1], self.end]
        for register, own in given.items():
            pairs = zip(own, registers[register], strict=True)
            registers[register] = [value if value != UNSET else old for value, old in pairs]
        return self._place(registers, words, 0)

    def _place(self, registers: list[list[int]], words: list[int], first: int) -> Columns:
        parts = self.program.parts
        start = FIRST_NUMBER + 1 + first
        registers[parts["position"]] = list(range(start, start + len(words)))
        registers[parts["symbol"]] = words
        return tuple(registers)

    def _run(self, cells: RowCells, registers: Columns) -> None:
        """Runs new cells through all layers."""
        self._statements(cells, self.statements, registers, (), cells.tree)

    def _statements(
        self, cells: RowCells, statements: Sequence[_Heads | _Repeat], registers: Columns, path: Path, tree: list[Any]
    ) -> Columns:
        """Runs a body and writes its tree."""
        for place, statement in enumerate(statements):
            if not isinstance(statement, _Repeat):
                tree.append(registers)
                registers = _layer(statement, View(cells, registers, path, place))
            else:
                tree.append([])
                registers = self._repeat(cells, statement, registers, (path, place), tree[-1])
        tree.append(registers)
        return registers

    def _repeat(
        self, cells: RowCells, repeat: _Repeat, registers: Columns, where: tuple[Path, int], rounds: list[Any]
    ) -> Columns:
        path, place = where
        for repetition in range(repeat.block.bound):
            inner = (*path, (place, repetition))
            rounds.append([])
            before, registers = registers, self._statements(cells, repeat.body, registers, inner, rounds[-1])
            if repeat.until is None:
                ended = registers == before
            else:
                ended = bool(repeat.until.reads(View(cells, registers, inner, len(repeat.body))))
            if ended:
                return registers
        raise DATRepeatError.of_block(repeat.block.comment, repeat.block.bound)


def _layer(heads: _Heads, view: View) -> Columns:
    """The registers after a layer: all heads read its input. They are the same object if nothing has changed."""
    made: list[list[int]] | None = None
    for head in heads:
        if reads := head.reads(view):
            made = list(view.registers) if made is None else made
            head.write(view, reads, made)
    if made is None or all(new is old for new, old in zip(made, view.registers, strict=True)):
        return view.registers
    return tuple(made)
