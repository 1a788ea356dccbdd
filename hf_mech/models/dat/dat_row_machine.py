"""Runs a program row by row on plain integers: the same as `dat_machine.Machine` does with tensors, for few cells.

A tensor operation costs as much for one cell as for a thousand. A new word of one row asks most layers one question,
whose answer is no, so here it costs less than the operations that would put the question. Tests are sets of values, and
the cell that is read is looked up in an index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .dat_gather import GatherBackend, MatchPlan, Pair, Source
from .dat_machine import History
from .dat_program import FIRST_NUMBER, UNDEFINED, UNSET, Block, DATRepeatError, Operand, Statement
from .dat_rows import Columns, FirstCells, Line, Path, RowCells, RowGroup

# --------------------------------------------------------------------------------------------------------------- layers

Functions = Mapping[str, Mapping[int, int]]  # the values at which a function is defined, and its values there
Read = tuple[int, int]  # a cell that fires, counted among those being updated, and the cell that it reads, in the row
Entry = tuple[int, tuple[int, ...], tuple[int, ...]]  # a cell, counted in the row, and its sides: see `Sides`


@dataclass(slots=True)
class View:
    """The cells that are being updated, at one place of the program; with their row they say what can be read.

    Args:
        cells: the cells.
        registers: their registers now.
        path, place: the repetitions and the statement.
    """

    cells: RowCells
    registers: Columns
    path: Path
    place: int

    def registers_of(self, cells: RowCells) -> Columns:
        """The registers of these or earlier cells of the row, at the same place."""
        return self.registers if cells is self.cells else cells.before(self.path, self.place)

    def values(self, register: int, columns: Sequence[int]) -> list[int]:
        """A register of cells of the row."""
        if not self.cells.first:
            own = self.registers[register]
            return [own[column] for column in columns]
        groups = [(self.cells.line.group_of(column), column) for column in columns]
        return [self.registers_of(group)[register][column - group.first] for group, column in groups]


class RowLayer:
    """The tests of a production, or of the condition that ends a repeat block, and its assignments.

    Args:
        plan: the tests.
        functions: those of the program.
        right, causal: see `dat_program.Layer`.
        writes: register -> the register that is copied to it, or a constant.
        head: its number among the productions of its layer, (90a).
    """

    def __init__(
        self,
        plan: MatchPlan,
        functions: Functions,
        right: bool = False,
        causal: bool = False,
        writes: Sequence[tuple[int, Operand]] = (),
        head: int = 0,
    ):
        self.plan, self.right, self.causal, self.writes, self.head = plan, right, causal, writes, head
        self.functions = functions
        self.updated = _Tests(plan.updated, functions)
        self.read = _Tests(plan.read, functions)
        self.pairs = [_Pair(pair, functions) for pair in plan.pairs]
        self.located = None if plan.located is None else _Side(plan.located, functions)
        self.queries = _Sides([pair.query for pair in self.pairs], self.pairs)
        self.keys = _Sides([pair.key for pair in self.pairs], self.pairs)

    def write(self, view: View, reads: Sequence[Read], made: list[list[int]]) -> None:
        """Writes the values of the cells that are read to `made`, the registers after the layer."""
        for target, source in self.writes:
            column = made[target].copy()
            if source.register is None:
                for cell, _ in reads:
                    column[cell] = source.values[0]
            else:
                values = view.values(source.register, [n for _, n in reads])
                if source.function is not None:  # where it has no value, the register stays
                    function = self.functions[source.function]
                    values = [function.get(value, column[cell]) for (cell, _), value in zip(reads, values, strict=True)]
                for (cell, _), value in zip(reads, values, strict=True):
                    column[cell] = value
            if column != made[target]:
                made[target] = column

    def reads(self, view: View) -> list[Read]:
        """The cells that fire, and those that they read."""
        cells = self.updated.passing(view.registers, range(view.cells.size if self.plan.possible else 0))
        if not cells:
            return []
        return self._look_up(view, cells) if self.located is None else self._by_position(view, cells, self.located)

    def _by_position(self, view: View, cells: Sequence[int], located: _Side) -> list[Read]:
        """A position names the cell to be read: no search is needed."""
        first, end = view.cells.first, view.cells.first + view.cells.size
        reads = [
            (cell, value - FIRST_NUMBER - 1)
            for cell, value in zip(cells, located.values(view.registers, cells), strict=True)
            if 0 < value - FIRST_NUMBER <= (first + cell + 1 if self.causal else end)
        ]
        for register, among, negated in self.read.tests:
            values = view.values(register, [n for _, n in reads])
            reads = [read for read, value in zip(reads, values, strict=True) if (value in among) != negated]
        for pair in self.pairs:
            queries = pair.query.values(view.registers, [cell for cell, _ in reads])
            keys = pair.key.images(view.values(pair.key.register, [n for _, n in reads]))
            reads = [read for read, query, key in zip(reads, queries, keys, strict=True) if pair.holds(query, key)]
        return reads

    def _look_up(self, view: View, cells: Sequence[int]) -> list[Read]:
        """Each cell looks for the first (or last) that it may read, in an index of those that pass the tests of n."""
        first = view.cells.first
        asking = self.queries.entries(view.registers, cells, first)
        index, later = self._index(view)
        reads = []
        for cell, key, others in asking:
            while later and (not self.causal or later[-1][0] <= cell):
                index.add(*later.pop())
            found = index.find(key, others)
            if found is not None:
                reads.append((cell - first, found))
        while later:
            index.add(*later.pop())
        return reads

    def _index(self, view: View) -> tuple[FirstCells, list[Entry]]:
        """The index of cells, and those that it does not have yet, the next one at the end.

        The row keeps the index for the next word, unless it is that of a prompt: most of these are never used again.
        """
        line, where = view.cells.line, (view.path, view.place, self.head)
        count, index = line.found.get(where, (0, FirstCells(self.right)))
        if view.cells.first:
            line.found[where] = (len(line.groups), index)
        later: list[Entry] = []
        for group in line.groups[count:]:
            registers = view.registers_of(group)
            passing = self.read.passing(registers, range(group.size))
            later += self.keys.entries(registers, passing, group.first)
        later.reverse()
        return index, later


class _Side:
    """One side of a match: a register, perhaps through a function."""

    def __init__(self, source: Source, functions: Functions):
        self.register = source.register
        self.function = None if source.function is None else functions[source.function]
        self.negated = source.negated

    def images(self, values: list[int]) -> list[int]:
        """The function's values; `UNDEFINED` where it has none."""
        function = self.function
        return values if function is None else [function.get(value, UNDEFINED) for value in values]

    def values(self, registers: Columns, cells: Sequence[int]) -> list[int]:
        """The side in these cells."""
        column = registers[self.register]
        return self.images([column[cell] for cell in cells])


class _Tests:
    """Tests of one cell against constants, as sets of the register's values.

    An undefined value matches neither a constant nor a negation, but a negated side with an undefined value matches.

    Attributes:
        tests: of each test the register, and the values that it must have, or if `negated` must not have.
    """

    def __init__(self, tests: Sequence[tuple[Source, Operand]], functions: Functions):
        self.tests: list[tuple[int, frozenset[int], bool]] = []
        for source, constants in tests:
            among, negated = frozenset(constants.values), source.negated or constants.negated
            if source.function is not None:
                images = functions[source.function].items()
                among = frozenset(value for value, image in images if (image in among) != constants.negated)
                negated = source.negated
            self.tests.append((source.register, among, negated))

    def passing(self, registers: Columns, cells: Sequence[int]) -> Sequence[int]:
        """The cells that pass all tests."""
        for register, among, negated in self.tests:
            column = registers[register]
            cells = [cell for cell in cells if (column[cell] in among) != negated]
            if not cells:
                break
        return cells


class _Pair:
    """A test of both cells: equality, or its negation, (72e). An undefined value is negative; see `_Tests`."""

    def __init__(self, pair: Pair, functions: Functions):
        self.query, self.key = _Side(pair.query, functions), _Side(pair.key, functions)
        self.negated = pair.query.negated or pair.key.negated

    def holds(self, query: int, key: int) -> bool:
        if self.negated:
            return query != key and (key if self.query.negated else query) >= 0
        return query == key and query >= 0


class _Sides:
    """All queries, or all keys: the ones of pairs to be equal, and the ones of pairs to differ."""

    def __init__(self, sides: Sequence[_Side], pairs: Sequence[_Pair]):
        self.equal = [side for side, pair in zip(sides, pairs, strict=True) if not pair.negated]
        self.other = [side for side, pair in zip(sides, pairs, strict=True) if pair.negated]
        self.partial = [(side.register, side.function) for side in sides if side.function and not side.negated]

    def entries(self, registers: Columns, cells: Sequence[int], first: int) -> list[Entry]:
        """The cells of a group and the values of both kinds, without those whose undefined values match nothing."""
        for register, function in self.partial:
            column = registers[register]
            cells = [cell for cell in cells if column[cell] in function]
        equal, other = ([side.values(registers, cells) for side in sides] for sides in (self.equal, self.other))
        nothing = [()] * len(cells)
        return [
            (first + cell, key, others)
            for cell, key, others in zip(
                cells,
                zip(*equal, strict=True) if equal else nothing,
                zip(*other, strict=True) if other else nothing,
                strict=True,
            )
        ]


# -------------------------------------------------------------------------------------------------------------- machine

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
        raise DATRepeatError(repeat.block.comment, repeat.block.bound)


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
