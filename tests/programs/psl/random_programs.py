"""Random PSL programs and prompts for hypothesis, and the comparison of machines that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.check import check_program
from hf_mech.programs.psl.machine import Machine, Run
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.values import register_function, value_sets

LIMIT = 12
"""The greatest position in these runs; some of them exceed it."""

WORDS = ("A", "B", "1", "2", "s", "p@pos_increment")
"""Words of prompts and constants of programs: letters, numbers, and what reads as a register in QKVL."""

OTHERS = {"mark": "m", "previous": "s*", "flag": "a", "Goal": "A", "end": "z"}
"""Registers beside symbol and position; the short name `A` is a constant's value, too."""

register_function("turned", {"A": "B", "B": "A", "1": "A", "s": "1"}.get)

Names = tuple[str, ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Checked programs: 2 to 6 registers, all forms of tests and assignments, nested repeat blocks, value sets."""
    dice = _Dice(draw)
    others = dice.some(tuple(OTHERS), 0, 4)
    names = ("symbol", "position", *others)
    free = list(others)
    roles = {role: free.pop() for role in ("parse", "eop") if free and dice.yes()}
    program = Program(
        registers={"symbol": "s", "position": "p"} | {name: OTHERS[name] for name in others},
        constants={"letter": "A", "B": "B"},
        system={"symbol": "symbol", "position": "position", "output": dice.one(names), **roles},
        statements=tuple(_statement(dice, names, depth=2) for _ in range(dice.one((1, 2, 3, 4)))),
        initial={name: dice.one(WORDS) for name in free if dice.yes()},
        stop=dice.some(WORDS, 0, 1),
    )
    if dice.yes():
        program = replace(program, values=_closed_value_sets(program))
    return check_program(program)


def prompts() -> st.SearchStrategy[list[str]]:
    """Prompts of 1 to 7 words, among them one that no program names."""
    return st.lists(st.sampled_from((*WORDS, "C")), min_size=1, max_size=7)


def kind(error: ProgramsError) -> str:
    """What ended a run: a bound of a repeat block, a limit of words, or another fault."""
    return "endless" if error.bound is not None else "long" if error.limit is not None else str(error)


def outcome(machine: Machine, prompt: list[str], max_new_tokens: int = 3) -> Run | str:
    """A run, or the kind of error that ended it."""
    try:
        return machine.run(prompt, max_new_tokens=max_new_tokens, max_position_embeddings=LIMIT)
    except ProgramsError as error:
        return kind(error)


def assert_same_runs(run_a: Run | str, run_b: Run | str) -> None:
    """Both ended in the same error, or agree in every declared register of every cell after every layer."""
    if not (isinstance(run_a, Run) and isinstance(run_b, Run)):
        assert run_a == run_b, f"one ended in {run_a}, the other in {run_b}"
        return
    for group, (steps_a, steps_b) in enumerate(zip(run_a.trace, run_b.trace, strict=False)):
        for step_a, step_b in zip(steps_a, steps_b, strict=False):
            assert step_a.path == step_b.path, f"group {group} of cells: {step_a.path} and {step_b.path}"
            for number, (cell_a, cell_b) in enumerate(zip(step_a.cells, step_b.cells, strict=True)):
                where = f"group {group} of cells, {step_a.path}, cell {number} of the group"
                assert dict(cell_a) == dict(cell_b), where
        assert len(steps_a) == len(steps_b), f"group {group} of cells went through unlike numbers of layers"
    assert len(run_a.trace) == len(run_b.trace)
    assert run_a.completion == run_b.completion


class _Dice:
    """Draws from strategies that are made once: making one costs more than drawing from it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one(self, values: tuple[Any, ...]) -> Any:
        return self.draw(_one_of(values))

    def yes(self) -> bool:
        return self.one((False, True))

    def some(self, values: tuple[Any, ...], least: int, most: int) -> tuple[Any, ...]:
        """Some of the values, each at most once."""
        left = list(values)
        count = self.one(tuple(range(least, min(most, len(left)) + 1)))
        return tuple(left.pop(self.one(tuple(range(len(left))))) for _ in range(count))


@cache
def _one_of(values: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _statement(dice: _Dice, names: Names, depth: int) -> Production | Repeat:
    if depth == 0 or dice.one((False, False, True)) is False:
        return _production(dice, names)
    body = tuple(_statement(dice, names, depth - 1) for _ in range(dice.one((1, 2, 3))))
    until = _tests(dice, names, dice.yes()) if dice.yes() else None
    return Repeat(body, until, bound=dice.one((8, 7, 2, 1)))


def _production(dice: _Dice, names: Names) -> Production:
    reads_n = dice.one((True, True, True, False))
    assigned = dice.some(tuple(name for name in names if name != "position"), 1, 3)
    return Production(
        tests=_tests(dice, names, reads_n),
        assignments=tuple(Assignment(name, _value(dice, names, reads_n)) for name in assigned),
        right_match=dice.yes(),
        causal=dice.yes(),
    )


def _value(dice: _Dice, names: Names, reads_n: bool) -> Reference | str:
    if dice.one((True, True, False)):
        return Reference(dice.one(names), "n" if reads_n else "N", _function(dice))
    return dice.one(WORDS)


def _function(dice: _Dice) -> str | None:
    return dice.one((None, None, "pos_increment", "pos_decrement", "turned"))


def _tests(dice: _Dice, names: Names, reads_n: bool) -> tuple[Test, ...]:
    return tuple(_test(dice, names, reads_n) for _ in range(dice.one((1, 2, 3))))


def _test(dice: _Dice, names: Names, reads_n: bool) -> Test:
    register = dice.one(names)
    if dice.yes():
        operator = dice.one(("==", "!=", "in", "not in"))
        values = ("1", "2", "3") if register == "position" else WORDS
        constants = Constants(dice.some(values, 1, 3 if "in" in operator else 1))
        return Test(Reference(register, dice.one(("n", "N")) if reads_n else "N"), operator, constants)
    function = _function(dice)
    left, right = dice.one((("n", "N"), ("N", "n"))) if reads_n else ("N", "N")
    operator = dice.one(("==", "==", "!="))
    return Test(Reference(register, left), operator, Reference(dice.one(names), right, function))


def _closed_value_sets(program: Program) -> Mapping[str, tuple[str, ...]]:
    """Declared sets for the registers that hold constants alone: what they may hold, and what they are tested for."""
    tested: dict[str, set[str]] = {name: set() for name in program.registers}
    for test in _all_tests(program.statements):
        if isinstance(test.right, Constants):
            tested[test.left.register] |= set(test.right.values)
    return {
        name: tuple(sorted(held.constants | tested[name]))
        for name, held in value_sets(program).items()
        if (held.constants or tested[name]) and not (held.words or held.numbers)
    }


def _all_tests(statements: tuple[Production | Repeat, ...]) -> list[Test]:
    found: list[Test] = []
    for statement in statements:
        if isinstance(statement, Production):
            found += statement.tests
        else:
            found += [*_all_tests(statement.body), *(statement.until or ())]
    return found
