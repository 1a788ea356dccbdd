"""One layer on the integers of one row: tests are sets of values, and the cell that is read is looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .dat_first_cells import FirstCells
from .dat_match_plan import MatchPlan, Pair, Source
from .dat_program import Operand
from .dat_rows import Columns, Path, RowCells
from .dat_values import FIRST_NUMBER, UNDEFINED

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
