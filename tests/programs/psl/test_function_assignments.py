"""A function in an assignment, (62d-iii): its images, and the register that keeps its value where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hf_mech.programs.errors import PSLError
from hf_mech.programs.psl import load_program, value_sets
from hf_mech.programs.psl.values import ValueSet, function_tables, register_function, unregister_function
from tests.programs.psl.agreement import final_cells

HEAD = """\
registers: {symbol: 's', position: 'p', mark: 'm', other: 'o'}
system: {symbol: symbol, position: position, output: mark}
"""
LIMIT = 6


@pytest.fixture
def flip() -> Iterator[None]:
    """A registered function that is defined for three words."""
    register_function("flip", {"up": "down", "down": "up", "1": "one"}.get)
    yield
    unregister_function("flip")


def final_marks(body: str, prompt: str) -> list[str | None]:
    """The register `mark` after the last layer: the same in every machine and backend, with all other registers."""
    return [cell["mark"] for cell in final_cells(load_program(HEAD + body), prompt, LIMIT)]


def test_the_image_of_n_is_assigned() -> None:
    body = "where position[n] == position[N]:\n  mark[N] = symbol[n]@pos_increment\n"
    assert final_marks(body, "0 4 5") == ["1", "5", "6"]


def test_the_image_of_N_is_assigned() -> None:
    body = "where position[N] != 2:\n  mark[N] = position[N]@pos_decrement\n"
    assert final_marks(body, "a b c") == ["0", None, "2"]


def test_an_undefined_image_leaves_the_register_as_it_was(flip: None) -> None:
    """Letters, nil, what lies outside 0..T, and other values than the function's: none is assigned, nor is nil."""
    body = "initial: {mark: 'kept'}\nwhere position[n] == position[N]:\n  mark[N] = symbol[n]@"
    assert final_marks(f"{body}pos_increment\n", "a 5 6 7 07") == ["kept", "6", "kept", "kept", "kept"]
    assert final_marks(f"{body}pos_decrement\n", "0 1 x") == ["kept", "0", "kept"]
    assert final_marks(f"{body}flip\nwhere symbol[N] in ['up', 'down']:\n  other[N] = 'x'\n", "up 1 2 down") == [
        "down", "one", "kept", "up",
    ]  # fmt: skip
    of_nil = "initial: {mark: 'kept'}\nwhere position[n] == position[N]:\n  mark[N] = other[n]@pos_increment\n"
    assert final_marks(of_nil, "a") == ["kept"]


def test_the_other_assignments_of_the_production_are_made_all_the_same() -> None:
    body = (
        "where position[n] == position[N]:\n  mark[N] = symbol[n]@pos_decrement\n  other[N] = 'seen'\n"
        "where other[n] == 'seen' and position[n] == position[N] and symbol[N] == 'a':\n  mark[N] = other[n]\n"
    )
    assert final_marks(body, "a 3") == ["seen", "2"]


def test_the_functions_of_assignments_are_tabulated(flip: None) -> None:
    program = load_program(f"{HEAD}where symbol[n] == 'up':\n  mark[N] = symbol[n]@flip\n")
    assert function_tables(program, 2) == {"flip": {"up": "down", "1": "one"}}


def test_value_sets_hold_the_images(flip: None) -> None:
    body = (
        "constants: {up: 'up'}\nregisters: {third: 't', fourth: '4'}\ninitial: {other: up, fourth: 'x'}\n"
        "where position[n] == 1:\n  mark[N] = other[n]@flip\n  third[N] = position[n]@flip\n"
        "  fourth[N] = fourth[n]@pos_increment\n"
    )
    sets = value_sets(load_program(HEAD + body))
    assert sets["mark"] == ValueSet(frozenset(["down"]), nil=True)
    assert sets["third"] == ValueSet(frozenset(["one"]), nil=True)
    assert sets["fourth"] == ValueSet(frozenset(["x"]))


def test_an_image_outside_the_declared_values_is_refused(flip: None) -> None:
    text = (
        HEAD + "initial: {other: 'up'}\nvalues: {mark: [VALUES]}\nwhere position[n] == 1:\n  mark[N] = other[n]@flip\n"
    )
    load_program(text.replace("VALUES", "'down'"))
    with pytest.raises(PSLError, match="may get `down`"):
        load_program(text.replace("VALUES", "'up'"))
    with pytest.raises(PSLError, match="may get any position"):
        load_program(f"{HEAD}values: {{mark: ['0']}}\nwhere position[n] == 1:\n  mark[N] = position[n]@pos_decrement\n")


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(PSLError, match=r"mark\[n\]@flop.*there is no function `@flop`"):
        load_program(f"{HEAD}where mark[n] == 'A':\n  mark[N] = mark[n]@flop\n")
