"""PSM, the Production System Machine: runs PSL directly by (33)-(34), and so defines its meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..language.functions import Table, built_in_tables, function_tables
from ..language.syntax import Assignment, Production, Program, Reference, Repeat, Test
from .machine import UNDEFINED, Block, Cells, Layer, Loop, Machine, State

Tables = Mapping[str, Table]


class PSM(Machine):
    """The machine of Sec. 5.1 with a program that has passed the checker.

    >>> from hf_mech.psl.language.syntax import Assignment, Constants, Production, Program, Reference, Test
    >>> follows = Test(Reference("p", "n"), "==", Reference("p", "N", "pos_increment"))
    >>> shift = Production((follows,), (Assignment("next", Reference("s", "n")),))
    >>> names = {"s": "s", "p": "p", "next": "x"}
    >>> machine = PSM(Program(names, {}, {"symbol": "s", "position": "p", "output": "next"}, (shift,)))
    >>> [cell["next"] for cell in machine.run("a b c").final]
    ['b', 'c', None]
    """

    def __init__(self, program: Program) -> None:
        productions = iter(range(1, len(list(program.productions)) + 1))
        block = _block(program.statements, productions)
        super().__init__(
            list(program.registers),
            program.system,
            program.initial,
            program.prompt,
            program.values,
            program.stop,
            block,
        )
        self.program = program

    def tables(self, limit: int) -> Tables:
        return {**built_in_tables(limit), **function_tables(self.program, limit)}

    def match(self, rule: _Rule, cells: Cells, updated: range, functions: Tables) -> list[int | None]:
        """The least n, or with `where_rm` the greatest, for which all tests hold (33d-iv-3), (61e).

        Tests that name only one of the two cells are evaluated once for that cell. Tests for equality between n and N
        use an index: cells n with equal tested values are found together.
        """
        if not rule.reads_n:
            return [N if rule.holds(rule.of_N, cells[N], cells[N], functions) else None for N in updated]
        matches: list[int | None] = [None] * len(updated)
        open_cells = [(i, N) for i, N in enumerate(updated) if rule.holds(rule.of_N, cells[N], cells[N], functions)]
        if not open_cells:
            return matches
        same: dict[tuple[str | None, ...], list[int]] = {}
        for n in range(len(cells) - 1, -1, -1) if rule.production.right_match else range(len(cells)):
            if rule.holds(rule.of_n, cells[n], cells[n], functions):
                same.setdefault(tuple(_value(test[0], cells[n], functions) for test in rule.equal), []).append(n)
        for i, N in open_cells:
            wanted = tuple(_value(test[1], cells[N], functions) for test in rule.equal)
            for n in same.get(wanted, ()):
                causal = n <= N or not rule.production.causal
                if causal and rule.holds(rule.of_both, cells[n], cells[N], functions):
                    matches[i] = n
                    break
        return matches

    def update(self, rule: _Rule, of_N: State, of_n: State, functions: Tables) -> State:
        """The Action: assigned registers take their values from n, all others stay unchanged (33d-iv-1, 4).

        An undefined function value is not assigned.
        """
        values = {item.register: _assigned(item, of_n, of_N, functions) for item in rule.production.assignments}
        return {**of_N, **{register: value for register, value in values.items() if value is not UNDEFINED}}


@dataclass(frozen=True)
class _Rule:
    """A production with its tests sorted by the cells they name.

    Args:
        of_n, of_N: tests that name one cell.
        equal: pairs that must be equal: a register of n, a register of N.
        of_both: the other tests that name both cells.
    """

    production: Production
    reads_n: bool
    of_n: tuple[Test, ...]
    of_N: tuple[Test, ...]
    equal: tuple[tuple[Reference, Reference], ...]
    of_both: tuple[Test, ...]

    @classmethod
    def of(cls, production: Production) -> _Rule:
        sorted_tests: dict[frozenset[str], list[Test]] = {}
        for test in production.tests:
            sorted_tests.setdefault(frozenset(reference.cell for reference in test.references), []).append(test)
        both = sorted_tests.get(frozenset("nN"), [])
        return cls(
            production=production,
            reads_n=production.reads_n,
            of_n=tuple(sorted_tests.get(frozenset("n"), [])),
            of_N=tuple(sorted_tests.get(frozenset("N"), [])),
            equal=tuple(_n_first(test) for test in both if not test.negated),
            of_both=tuple(test for test in both if test.negated),
        )

    @staticmethod
    def holds(tests: Iterable[Test], of_n: State, of_N: State, functions: Tables) -> bool:
        """Whether all tests hold for a pair of cells."""
        return all(_holds(test, of_n, of_N, functions) for test in tests)


def _block(statements: tuple[Production | Repeat, ...], productions: Iterator[int]) -> Block:
    return tuple(
        Layer(next(productions), _Rule.of(statement))
        if isinstance(statement, Production)
        else Loop(
            _block(statement.body, productions),
            None if statement.until is None else _Rule.of(Production(statement.until, ())),
            statement.bound,
            statement.place.line,
        )
        for statement in statements
    )


def _n_first(test: Test) -> tuple[Reference, Reference]:
    left, right = test.references
    return (left, right) if left.cell == "n" else (right, left)


def _holds(test: Test, of_n: State, of_N: State, functions: Tables) -> bool:
    """One test of a pair of cells; an undefined function value equals nothing."""
    left = _value(test.left, of_n if test.left.cell == "n" else of_N, functions)
    if isinstance(test.right, Reference):
        right = _value(test.right, of_n if test.right.cell == "n" else of_N, functions)
        return (left == right) != test.negated
    return (left in test.right.values) != test.negated


def _value(reference: Reference, state: State, functions: Tables) -> str | None:
    value = state[reference.register]
    if reference.function is None:
        return value
    return UNDEFINED if value is None else functions[reference.function].get(value, UNDEFINED)


def _assigned(assignment: Assignment, of_n: State, of_N: State, functions: Tables) -> str | None:
    if isinstance(assignment.value, str):
        return assignment.value
    return _value(assignment.value, of_n if assignment.value.cell == "n" else of_N, functions)
