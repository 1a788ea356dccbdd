"""The functions of tests: numbers within 0..T, users' functions as tables, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.values import (
    built_in_tables,
    function_names,
    function_tables,
    pos_decrement,
    pos_increment,
    register_function,
    tabulate,
    unregister_function,
)


@pytest.fixture
def opposite() -> Iterator[str]:
    """A registered function that turns L and R about."""
    register_function("opposite", {"L": "R", "R": "L"}.get)
    yield "opposite"
    unregister_function("opposite")


def program_using(function: str) -> Program:
    test = Test(Reference("side", "n"), "==", Reference("side", "N", function))
    until = (Test(Reference("side", "N"), "in", Constants(("L", "up"))),)
    body = (Production((test,), (Assignment("side", "R"),)),)
    return Program(
        registers={"symbol": "s", "position": "p", "side": "d"},
        constants={"left": "L"},
        system={"symbol": "symbol", "position": "position", "output": "symbol"},
        statements=(Repeat(body, until),),
        initial={"side": "L"},
        stop=("end",),
    )


@pytest.mark.parametrize("value", [None, "", "007", "+1", "-1", "1.0", " 1", "B", "١"])  # noqa: RUF001
def test_what_is_no_canonical_number_has_no_neighbour(value: str | None) -> None:
    assert pos_increment(value) is None
    assert pos_decrement(value) is None


def test_numbers_step_within_the_limit() -> None:
    assert [pos_increment(str(k), 3) for k in range(6)] == ["1", "2", "3", None, None, None]
    assert [pos_decrement(str(k), 3) for k in range(6)] == [None, "0", "1", "2", None, None]
    assert built_in_tables(2) == {"pos_increment": {"0": "1", "1": "2"}, "pos_decrement": {"1": "0", "2": "1"}}


def test_a_registered_function_is_tabulated_over_numbers_and_constants(opposite: str) -> None:
    seen: list[str] = []
    register_function("spy", lambda value: seen.append(value))
    try:
        assert function_tables(program_using("spy"), 2) == {"spy": {}}
    finally:
        unregister_function("spy")
    assert seen == ["0", "1", "2", "L", "end", "up", "R"]
    assert function_tables(program_using(opposite)) == {"opposite": {"L": "R", "R": "L"}}
    assert opposite in function_names()


def test_a_built_in_function_needs_no_table() -> None:
    assert function_tables(program_using("pos_increment")) == {}


def test_what_is_refused(opposite: str) -> None:
    register_function(opposite, tabulate.__globals__["_REGISTERED"][opposite])  # the same again is no error
    for name in ("pos_increment", opposite, "two words", ""):
        with pytest.raises(ProgramsError):
            register_function(name, str.upper)
    with pytest.raises(ProgramsError, match="callable"):
        register_function("other", "text")  # type: ignore[arg-type]
    with pytest.raises(ProgramsError, match="not registered"):
        function_tables(program_using("unheard_of"))
    with pytest.raises(ProgramsError, match="no registered function"):
        unregister_function("pos_increment")


def test_functions_that_fail_are_named() -> None:
    register_function("fails", lambda value: str(1 // int(value)))
    register_function("number", lambda value: 3)  # type: ignore[arg-type, return-value]
    try:
        with pytest.raises(ProgramsError, match="ZeroDivisionError"):
            tabulate("fails", ["1", "0"])
        with pytest.raises(ProgramsError, match="expected a string or None"):
            tabulate("number", ["1"])
    finally:
        unregister_function("fails")
        unregister_function("number")
