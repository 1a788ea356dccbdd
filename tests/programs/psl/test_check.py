"""The checker: every rule refuses at its line with reason and mend, and lets through what can be compiled."""

from __future__ import annotations

import dataclasses

import pytest

from hf_mech.programs.errors import ProgramsError, PSLError
from hf_mech.programs.psl.check import check_program
from hf_mech.programs.psl.library import load_program
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Reference, Repeat, Test
from hf_mech.programs.psl.values import ValueSet, register_function, unregister_function, value_sets

HEAD = """\
registers: {symbol: 's', position: 'p', mark: 'm', other: 'o', parse: 'a', last: 'z'}
constants: {A, B, EOP}
system: {symbol: symbol, position: position, output: symbol, parse: parse, eop: last}
"""
GOOD = "where mark[n] == A:\n  mark[N] = B\n"


def load(body: str):  # type: ignore[no-untyped-def]
    return load_program(HEAD + body)


@pytest.mark.parametrize(
    "body",
    [
        GOOD,
        "where position[N] == position[N]:\n  mark[N] = A\n",
        "where position[N] == position[N]@pos_increment:\n  mark[N] = other[N]\n",
        "where mark[n] == A and mark[n] != B and mark[n] in [A, B] and mark[n] == other[N]:\n  mark[N] = other[n]\n",
        "where mark[N] == A and mark[N] == B:\n  mark[N] = A\n",
        "where mark[N] == other[N]:\n  mark[N] = position[N]\n  symbol[N] = other[N]\n",
        "where position[n] == 0 and position[N] in [1, 17]:\n  mark[N] = A\n",
        "where mark[n] == position[N]@pos_decrement:\n  mark[N] = mark[n]\n",
        f"repeat 3:\n  where mark[N] == A:\n    mark[N] = B\nuntil mark[N] == other[N]\n{GOOD}",
        "values: {mark: [A, B], parse: [0, 1], last: [EOP]}\n" + GOOD,
        "values: {mark: [A], other: [A, B]}\nwhere mark[n] == A:\n  other[N] = mark[n]\n",
        "values: {other: [A]}\nwhere symbol[n] == A:\n  other[N] = symbol[n]\n",
        "values: {other: [A, B]}\nwhere symbol[n] in [A, B, EOP] and symbol[n] in [A, B]:\n  other[N] = symbol[n]\n",
    ],
)
def test_what_can_be_compiled_passes(body: str) -> None:
    program = load(body)
    assert check_program(program) is program


def production(test: str, assignment: str = "mark[N] = A") -> str:
    return f"where {test}:\n  {assignment}\n"


@pytest.mark.parametrize(
    ("body", "line", "expression", "reason", "mend"),
    [
        (
            production("mark[n] == other[n]"),
            4,
            "mark[n] == other[n]",
            "two registers of the cell n",
            "earlier production",
        ),
        (
            production("mark[n] != mark[n]"),
            4,
            "mark[n] != mark[n]",
            "two registers of the cell n",
            "earlier production",
        ),
        (
            production("mark[n] == A and\n  mark[N] != other[N]"),
            5,
            "mark[N] != other[N]",
            "where the production also reads the cell n",
            "earlier production",
        ),
        (
            production("mark[N] == other[N]", "mark[N] = other[n]"),
            4,
            "mark[N] == other[N]",
            "where the production also reads the cell n",
            "earlier production",
        ),
        (production("mark[n] == A", "mark[N] = other[N]"), 5, "mark[N] = other[N]", "also reads the cell n", "in two"),
        (GOOD + "  mark[N] = A\n", 6, "mark[N] = A", "assigns this register twice", "Leave one"),
        (production("mark[N] == A", "position[N] = A"), 5, "position[N] = A", "33a-ii", "another register"),
        (production("marc[n] == A"), 4, "marc[n] == A", "`marc` is not declared", "Did you mean `mark`?"),
        (production("o[n] == A"), 4, "o[n] == A", "`o` is not declared", "short name of `other`"),
        (production("mark[n] == A", "marc[N] = A"), 5, "marc[N] = A", "`marc` is not declared", "registers: {marc}"),
        (
            production("mark[n] == A", "mark[N] = marc[n]"),
            5,
            "mark[N] = marc[n]",
            "`marc` is not",
            "Did you mean `mark`?",
        ),
        (
            production("mark[n] == other[N]@pos_inc"),
            4,
            "mark[n] == other[N]@pos_inc",
            "there is no function `@pos_inc`",
            "Did you mean `pos_increment`",
        ),
        (production("mark[n] in []"), 4, "mark[n] in []", "never holds", "Name constants"),
        (production("mark[n] not in []"), 4, "mark[n] not in []", "always holds", "Name constants"),
        (production("position[n] == A"), 4, "position[n] == A", "`A` is none", "a number"),
        (production("position[N] in [1, 007]"), 4, "position[N] in ['1', '007']", "`007` is none", "a number"),
        (production("position[N] != -1"), 4, "position[N] != -1", "`-1` is none", "a number"),
        (
            "repeat:\n  where mark[N] == A:\n    mark[N] = B\nuntil mark[n] == other[n]",
            7,
            "",
            "two registers",
            "earlier",
        ),
        (
            "repeat:\n  where mark[N] == A:\n    mark[N] = B\nuntil mark[n] == A and mark[N] == other[N]",
            7,
            "mark[N] == other[N]",
            "where until also reads the cell n",
            "earlier",
        ),
        ("values: {mark: [A]}\n" + GOOD, 6, "mark[N] = B", "`B` is not among the declared values", "in `values`"),
        ("values: {mark: [B]}\n" + GOOD, 5, "mark[n] == A", "`A` is not among the declared values", "in `values`"),
        ("values: {mark: [A]}\ninitial: {mark: B}\n" + GOOD, 5, "mark: B", "`B` is not among", "in `values`"),
        ("values: {mark: []}\n" + GOOD, 4, "mark: []", "the set is empty", "leave the entry out"),
        ("values: {marc: [A]}\n" + GOOD, 4, "marc: ['A']", "`marc` is not declared", "Did you mean `mark`?"),
        ("values: {symbol: [A]}\n" + GOOD, 4, "symbol: ['A']", "may hold any word", "Leave the entry out"),
        ("values: {position: [1]}\n" + GOOD, 4, "position: ['1']", "may hold any position", "Leave the entry out"),
        ("values: {parse: [0]}\n" + GOOD, 4, "parse: ['0']", "holds `1` at the first layer", "Add '1'"),
        ("values: {last: [A]}\n" + GOOD, 4, "last: ['A']", "holds `EOP` at the first layer", "Add 'EOP'"),
        (
            "values: {mark: [A, B]}\n" + production("mark[n] == A", "mark[N] = symbol[n]"),
            6,
            "mark[N] = symbol[n]",
            "may get any word of the prompt",
            "wider",
        ),
        (
            "values: {mark: [A, B]}\n" + production("mark[n] == A", "mark[N] = position[n]"),
            6,
            "mark[N] = position[n]",
            "may get any position",
            "wider",
        ),
        (
            "values: {mark: [A]}\n"
            + production("other[N] == A", "other[N] = B")
            + production("mark[n] == A", "mark[N] = other[n]"),
            8,
            "mark[N] = other[n]",
            "may get `B`",
            "test `other[n]`",
        ),
        ("watch: [marc]\n" + GOOD, 4, "marc", "`marc` is not declared", "Did you mean `mark`?"),
        ("initial: {symbol: A}\n" + GOOD, 4, "symbol: A", "has the role `symbol`", "Leave it out"),
        ("initial: {parse: 0}\n" + GOOD, 4, "parse: 0", "has the role `parse`", "Leave it out"),
        ("registers: {more: 's'}\n" + GOOD, 4, "more: 's'", "`symbol` has the same short name", "Choose another"),
        ("registers: {more: 'a@b'}\n" + GOOD, 4, "more: 'a@b'", "without `@`", "Choose another"),
        ("registers: {more: 'a`'}\n" + GOOD, 4, "more: 'a`'", "backquote", "Choose another"),
        ("", 0, "program", "no production", "Write one"),
    ],
)
def test_what_cannot_be_compiled_is_refused(body: str, line: int, expression: str, reason: str, mend: str) -> None:
    with pytest.raises(PSLError) as caught:
        load(body)
    error = caught.value
    assert expression in error.expression
    assert reason in error.reason
    assert mend in error.mend
    assert error.line == line
    for part in (error.expression, error.reason, error.mend):
        assert part in str(error)
    if line:
        assert f"line {line}" in str(error)
        assert "\n    " + (HEAD + body).split("\n")[line - 1] in str(error)


@pytest.mark.parametrize(
    ("system", "expression", "reason", "mend"),
    [
        ("", "system", "no register is declared for the role `symbol`", "system: {...}"),
        ("system: {symbol: s, position: p}", "system", "the role `output`", "Add `output: <register>`"),
        ("system: {symbol: s, position: q, output: s}", "position: q", "`q` is not declared", "registers: {q}"),
        ("system: {symbol: s, position: p, output: s, pars: p}", "pars: p", "no role `pars`", "Did you mean `parse`?"),
        ("system: {symbol: s, position: s, output: s}", "position: s", "also has the role `symbol`", "of its own"),
        ("system: {symbol: s, position: p, output: s, eop: p}", "eop: p", "also has the role `position`", "of its own"),
    ],
)
def test_the_system_registers(system: str, expression: str, reason: str, mend: str) -> None:
    with pytest.raises(PSLError) as caught:
        load_program(f"registers: {{s, p}}\n{system}\nwhere s[n] == 'x':\n  s[N] = 'y'\n")
    assert expression in caught.value.expression
    assert reason in caught.value.reason
    assert mend in caught.value.mend
    assert caught.value.line == (2 if system else 0)


def test_registered_functions_are_known() -> None:
    text = production("mark[n] == other[N]@swapped")
    with pytest.raises(ProgramsError, match="register_function"):
        load(text)
    register_function("swapped", {"A": "B"}.get)
    try:
        load(text)
    finally:
        unregister_function("swapped")


MARK_N = Reference("mark", "n")


@pytest.mark.parametrize(
    "statement",
    [
        Production((), (Assignment("mark", "A"),)),
        Production((Test(MARK_N, "==", Constants(("A",))),), ()),
        Production((Test(MARK_N, "==", Constants(("A", "B"))),), (Assignment("mark", "A"),)),
        Production((Test(MARK_N, "in", Reference("mark", "N")),), (Assignment("mark", "A"),)),
        Production(
            (Test(Reference("mark", "n", "pos_increment"), "==", Reference("mark", "N")),), (Assignment("mark", "A"),)
        ),
        Production((Test(Reference("mark", "m"), "==", Constants(("A",))),), (Assignment("mark", "A"),)),
        Production((Test(MARK_N, "==", Constants(("A",))),), (Assignment("mark", Reference("mark", "n", "turn")),)),
        Repeat(()),
        Repeat((Production((Test(MARK_N, "==", Constants(("A",))),), (Assignment("mark", "A"),)),), bound=0),
        Repeat((Production((Test(MARK_N, "==", Constants(("A",))),), (Assignment("mark", "A"),)),), until=()),
    ],
)
def test_programs_built_by_hand_are_checked_too(statement: Production | Repeat) -> None:
    with pytest.raises(PSLError):
        check_program(dataclasses.replace(load(GOOD), statements=(statement,)))


# --------------------------------------------------------------------------------------------------------- value sets


def test_value_sets_are_a_fixpoint_over_the_assignments() -> None:
    program = load(
        "registers: {back: 'b', never: 'v', start: 'c'}\ninitial: {start: B}\n"
        "where position[n] == position[N]@pos_decrement:\n  back[N] = mark[n]\n"
        "where mark[N] == A:\n  mark[N] = other[N]\n"
        "where last[N] == EOP:\n  other[N] = position[N]\n  start[N] = A\n"
    )
    sets = value_sets(program)
    assert sets["symbol"] == ValueSet(words=True)
    assert sets["position"] == ValueSet(numbers=True)
    assert sets["parse"] == ValueSet(frozenset("1"))
    assert sets["last"] == ValueSet(frozenset(["EOP"]), nil=True)
    assert sets["never"] == ValueSet(nil=True)
    assert sets["start"] == ValueSet(frozenset("AB"))
    assert sets["back"] == sets["mark"] == sets["other"] == ValueSet(numbers=True, nil=True)
    assert str(sets["last"]) == "EOP | nil"


def test_a_completion_cells_symbol_is_what_the_output_register_held() -> None:
    program = load_program(
        "registers: {s, p, out, copy}\nsystem: {symbol: s, position: p, output: out}\n"
        "where s[n] == 'x':\n  out[N] = 'new'\nwhere s[n] in ['new', 'x']:\n  copy[N] = s[n]\n"
    )
    sets = value_sets(program)
    assert sets["s"] == ValueSet(frozenset(["new"]), words=True)
    assert sets["out"] == ValueSet(frozenset(["new"]), nil=True)
    assert sets["copy"] == ValueSet(frozenset(["new", "x"]), nil=True)
