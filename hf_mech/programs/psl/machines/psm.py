"""PSM, the Production System Machine: runs PSL directly by (33)-(34), and so defines its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hf_mech.programs.psl.language.syntax import Assignment, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.language.values import Table, built_in_tables, function_tables
from hf_mech.programs.psl.machines.machine import UNDEFINED, Block, Layer, Loop, Machine, Sought, State

Tables = Mapping[str, Table]


class PSM(Machine):
    """The machine of Sec. 5.1 with a program that has passed the checker.

    >>> from hf_mech.programs.psl.language.syntax import Assignment, Constants, Production, Program, Reference, Test
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

    def query(self, rule: _Rule, of_N: State, functions: Tables) -> Sought | None:
        """N's values in the tests of both cells, if the tests of N alone hold (33d-iv-3)."""
        return rule.sought(rule.of_N, 1, of_N, functions)

    def key(self, rule: _Rule, of_n: State, functions: Tables) -> Sought | None:
        """n's values in the tests of both cells, if the tests of n alone hold."""
        return rule.sought(rule.of_n, 0, of_n, functions)

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
        equal, different: pairs that must be equal, or differ: a register of n, a register of N.
    """

    production: Production
    of_n: tuple[Test, ...]
    of_N: tuple[Test, ...]
    equal: tuple[tuple[Reference, Reference], ...]
    different: tuple[tuple[Reference, Reference], ...]

    @classmethod
    def of(cls, production: Production) -> _Rule:
        sorted_tests: dict[frozenset[str], list[Test]] = {}
        for test in production.tests:
            sorted_tests.setdefault(frozenset(reference.cell for reference in test.references), []).append(test)
        both = sorted_tests.get(frozenset("nN"), [])
        return cls(
            production=production,
            of_n=tuple(sorted_tests.get(frozenset("n"), [])),
            of_N=tuple(sorted_tests.get(frozenset("N"), [])),
            equal=tuple(_n_first(test) for test in both if not test.negated),
            different=tuple(_n_first(test) for test in both if test.negated),
        )

    @property
    def reads_itself(self) -> bool:
        return not self.production.reads_n

    @property
    def right_match(self) -> bool:
        return self.production.right_match

    @property
    def causal_attn(self) -> bool:
        return self.production.causal

    def sought(self, tests: tuple[Test, ...], side: int, state: State, functions: Tables) -> Sought | None:
        """One side of the tests of both cells, if these tests of one cell hold."""
        for test in tests:
            if not _holds(test, state, functions):
                return None
        return Sought(
            tuple([_value(pair[side], state, functions) for pair in self.equal]),
            tuple([_value(pair[side], state, functions) for pair in self.different]),
        )


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


def _holds(test: Test, state: State, functions: Tables) -> bool:
    """A test of one cell; an undefined function value equals nothing."""
    left = _value(test.left, state, functions)
    if isinstance(test.right, Reference):
        return (left == _value(test.right, state, functions)) != test.negated
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
