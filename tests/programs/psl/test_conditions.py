"""`<`, `>`, `<=`, `>=` and `or`: the written meaning cell by cell, and what no production can say."""

from __future__ import annotations

import operator
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hf_mech.programs.errors import PSLError
from hf_mech.programs.psl import PSM, load_program
from hf_mech.programs.psl.conditions import MOST_ALTERNATIVES
from hf_mech.programs.psl.machine import State
from hf_mech.programs.psl.syntax import Constants, Production, Reference
from tests.programs.psl.agreement import final_cells

HEAD = """\
registers: {symbol: 's', position: 'p', mark: 'm', other: 'o', third: 't'}
system: {symbol: symbol, position: position, output: mark}
prompt: [other]
"""
LIMIT = 12
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def marks(
    condition: str, prompt: str, assignment: str = "mark[N] = position[n]", where: str = "where"
) -> list[str | None]:
    program = load_program(f"{HEAD}{where} {condition}:\n  {assignment}\n")
    return [cell["mark"] for cell in final_cells(program, prompt)]


# ---------------------------------------------------------------------------------------------------------- the orders


@pytest.mark.parametrize("where", ["where", "where_rm"])
@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("position[n] < position[N]", operator.lt),
        ("position[n] <= position[N]", operator.le),
        ("position[N] > position[n]", operator.lt),
        ("position[N] >= position[n]", operator.le),
    ],
)
def test_the_order_of_cells(where, condition, holds):
    prompt = "a b a b b a"
    words = list(enumerate(prompt.split(), start=1))
    for also in ("", " and symbol[n] == symbol[N]", " and symbol[n] == 'b'"):
        expected = []
        for N, word in words:
            found = [
                str(n)
                for n, other in words
                if holds(n, N) and (not also or other == (word if also.endswith("[N]") else "b"))
            ]
            expected.append(None if not found else found[-1 if where == "where_rm" else 0])
        assert marks(condition + also, prompt, where=where) == expected


def test_an_order_holds_for_its_own_production_alone():
    program = load_program(
        f"{HEAD}where position[n] < position[N]:\n  mark[N] = position[n]\n"
        "where symbol[n] == 'b':\n  other[N] = symbol[n]\n"
    )
    assert [item.causal for item in program.productions] == [True, False]


@pytest.mark.parametrize("sign", ORDERS)
@pytest.mark.parametrize("number", [1, 3, 40])
def test_positions_and_numbers(sign, number):
    prompt = "a b c d e"
    holding = [str(p) if ORDERS[sign](p, number) else None for p in range(1, 6)]
    if (sign, number) == ("<", 1) or (number == 40 and sign in (">", ">=")):
        assert holding == [None] * 5
    assert marks(f"position[N] {sign} {number}", prompt, "mark[N] = position[N]") == holding


def test_numbers_in_other_registers():
    """Words that are no numbers, nil, and numbers written in another way are neither less nor greater."""
    prompt = "0 2 02 3 -1 a 11 12 13"
    assert marks("symbol[N] < 3", prompt, "mark[N] = symbol[N]") == ["0", "2", *[None] * 7]
    assert marks("symbol[N] <= 13", prompt, "mark[N] = symbol[N]") == [
        "0",
        "2",
        None,
        "3",
        None,
        None,
        "11",
        "12",
        "13",
    ]
    assert marks("other[N] <= 13", prompt, "mark[N] = symbol[N]") == [None] * 9
    declared = HEAD + "values: {other: ['1', '2', '3', 'b']}\n"
    for sign, among in {"<": ["1"], "<=": ["1", "2"], ">": ["3"], ">=": ["2", "3"]}.items():
        (production,) = load_program(f"{declared}where other[n] {sign} 2:\n  mark[N] = other[n]\n").productions
        assert production.tests[0].right == Constants(tuple(among))


@pytest.mark.parametrize(
    ("condition", "reason", "mend"),
    [
        ("position[n] > position[N]", "never only those after N", "pos_increment` in a repeat block"),
        ("position[N] <= position[n]", "never only those after N", "noted[n] == position[N]"),
        ("mark[n] < other[N]", "match by equality", "position[n] < position[N]"),
        ("position[n] < mark[N]", "match by equality", "a production for each"),
        ("position[n] < position[N]@pos_decrement", "match by equality", "position[n] < position[N]"),
        ("position[N] < position[N]", "the same cell's", "position[n]"),
        ("mark[n] > 2", "may hold other values", "Declare its values"),
        ("mark[n] < 'b'", "`b` is no number", "in [...]"),
        ("mark[n] < 10001", "no number from 0 to 10000", "in [...]"),
        ("position[n] < 0", "it never holds", "Name constants"),
        ("position[n] >= 0", "it always holds", "Name constants"),
    ],
)
def test_orders_that_no_production_says(condition, reason, mend):
    with pytest.raises(PSLError) as caught:
        load_program(f"{HEAD}where {condition}:\n  mark[N] = other[n]\n")
    assert reason in caught.value.reason
    assert mend in caught.value.mend
    assert caught.value.line == 4


# ------------------------------------------------------------------------------------------------------- alternatives


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("mark[n] == 'A' or mark[n] == 'B'", "mark[n] in ['A', 'B']"),
        ("mark[n] in ['A', 'B'] or mark[n] == 'B' or mark[n] in ['C']", "mark[n] in ['A', 'B', 'C']"),
        ("mark[n] != 'A' or mark[n] not in ['C', 'A']", "mark[n] not in ['A']"),
        ("mark[n] not in ['A', 'B'] or mark[n] == 'B'", "mark[n] not in ['A']"),
        ("mark[n] == 'B' or mark[n] not in ['A', 'B']", "mark[n] not in ['A']"),
        ("mark[n] < 2 or mark[n] == 'B'", "mark[n] in ['0', '1', 'B']"),
        ("other[N] == 1 and (mark[n] == 'A' or mark[n] == 'B')", "other[N] == 1 and mark[n] in ['A', 'B']"),
        (
            "other[N] == 1 and mark[n] == 'A' or mark[n] == 'B' and other[N] == 1",
            "other[N] == 1 and mark[n] in ['A', 'B']",
        ),
        ("other[N] == 1 or (other[N] == 1 and mark[n] == 'B')", "other[N] == 1"),
        (
            "(mark[n] == 'A' or mark[n] == 'B') and (other[N] == 1 or other[N] == 2)",
            "mark[n] in ['A', 'B'] and other[N] in [1, 2]",
        ),
    ],
)
def test_alternatives_of_one_register_are_one_test(written, same):
    assert load(written).statements == load(same).statements


def load(condition, assignment="third[N] = symbol[n]", where="where"):
    return load_program(f"{HEAD}{where} {condition}:\n  {assignment}\n")


def test_alternatives_over_several_lines():
    assert len(list(load("mark[N] == 'A' or\n   # so far\n   other[N] == 'B'").productions)) == 2


def test_other_alternatives_are_productions_in_sequence():
    """Tests of N alone, and what is constant whichever n it is."""
    split = load("symbol[n] == 'x' and (mark[N] == 'A' or other[N] == 'B')")
    assert [len(item.tests) for item in split.productions] == [2, 2]
    assert len(list(load("mark[n] == 'A' or other[N] == 'B'", "third[N] = 'C'").productions)) == 2
    assert len(list(load("position[n] < position[N] or symbol[n] == 'x'", "third[N] = 'C'").productions)) == 2


@pytest.mark.parametrize(
    ("condition", "assignment", "reason"),
    [
        ("mark[n] == 'A' or other[n] == 'B'", "third[N] = symbol[n]", "first cell n that passes one alternative"),
        ("mark[n] == 'A' or symbol[n] == symbol[N]", "third[N] = symbol[n]", "first cell n that passes"),
        ("position[n] < position[N] or symbol[n] == 'x'", "third[N] = symbol[n]", "first cell n that passes"),
        ("mark[N] == 'A' or third[N] == 'B'", "third[N] = 'C'", "the first changes `third`"),
        ("mark[N] == 'A' or other[N] == 'B'", "third[N] = third[n]", "the first changes `third`"),
    ],
)
def test_other_alternatives_are_refused(condition, assignment, reason):
    with pytest.raises(PSLError) as caught:
        load(condition, assignment)
    assert reason in caught.value.reason
    assert "mark[n] == 1" in caught.value.mend
    assert " or " in caught.value.expression
    assert caught.value.line == 4


def test_the_way_round_that_the_error_names():
    """The leftmost cell with the mark A or the symbol x: its cells are marked first."""
    program = load_program(
        f"{HEAD}where other[N] == 'A' or symbol[N] == 'x':\n  mark[N] = 1\n"
        "where mark[n] == 1:\n  third[N] = position[n]\n"
    )
    run = PSM(program).run("a x b", registers={"other": [None, None, "A"]}, max_new_tokens=0)
    assert [cell["third"] for cell in run.final] == ["2", "2", "2"]


def test_a_block_ends_by_one_query_and_key():
    block = "repeat:\n  where mark[N] == 'A':\n    mark[N] = 'B'\nuntil "
    (either,) = load_program(f"{HEAD}{block}mark[n] == 'A' or mark[n] == 'B'\n").statements
    (listed,) = load_program(f"{HEAD}{block}mark[n] in ['A', 'B']\n").statements
    assert either == listed
    with pytest.raises(PSLError, match="a block ends by the tests of one query and key"):
        load_program(f"{HEAD}{block}mark[n] == 'A' or other[n] == 'B'\n")
    with pytest.raises(PSLError, match="never only those up to N"):
        load_program(f"{HEAD}{block}position[n] < position[N]\n")


def test_too_many_alternatives_are_refused():
    condition = " and ".join(f"(mark[N] == {k} or other[N] == {k})" for k in range(7))
    assert MOST_ALTERNATIVES < 2**7
    with pytest.raises(PSLError, match="more than 64 alternatives"):
        load(condition)


TESTS = (
    "symbol[n] == 'a'", "symbol[n] != 'a'", "symbol[N] in ['a', '1']", "symbol[N] != 'b'", "other[n] == 'a'",
    "other[n] not in ['a', 'b']", "other[N] == 'b'", "other[N] != 'a'", "other[N] == symbol[n]",
    "symbol[n] == symbol[N]",
    "position[n] < position[N]", "position[n] <= position[N]", "position[N] > 2", "position[n] < 3", "symbol[n] < 2",
    "symbol[n] != position[N]@pos_decrement",
)  # fmt: skip
ASSIGNMENTS = (
    "mark[N] = 'c'", "mark[N] = position[n]", "mark[N] = other[n]", "other[N] = 'c'",
    "mark[N] = symbol[n]@pos_increment",
)  # fmt: skip


def conditions():
    return st.recursive(
        st.sampled_from(TESTS),
        lambda inner: st.tuples(st.sampled_from([" and ", " or "]), st.lists(inner, min_size=2, max_size=3)),
        max_leaves=5,
    )


def text(condition):
    return condition if isinstance(condition, str) else f"({condition[0].join(map(text, condition[1]))})"


def holds(condition, of_n: State, of_N: State) -> bool:
    """What a condition says of two cells, read from its text."""
    if not isinstance(condition, str):
        return (all if condition[0] == " and " else any)(holds(part, of_n, of_N) for part in condition[1])
    left, sign, right = condition.replace("not in", "not-in").split(" ", 2)
    sides = []
    for side in (left, right):
        register, _, rest = side.partition("[")
        if register in of_n:
            value = (of_n if rest[0] == "n" else of_N)[register]
            if rest.endswith("@pos_decrement"):
                value = str(int(value) - 1)  # of a position
            sides.append(value)
        else:
            sides.append([word.strip("' ") for word in side.strip("[]").split(",")])
    one, other = sides
    if sign in ORDERS:
        other = other if isinstance(other, str) else other[0]
        return one is not None and one.isdigit() and ORDERS[sign](int(one), int(other))
    among = other if isinstance(other, list) else [other]
    return (one in among) == (sign in ("==", "in"))


@settings(deadline=None, max_examples=120)
@given(conditions(), st.sampled_from(ASSIGNMENTS), st.booleans(), st.integers(0, 10_000))
def test_random_conditions_mean_what_is_written(condition, assignment, right, seed):
    """The least (or greatest) n for which the condition holds, tried out cell by cell."""
    try:
        program = load(text(condition), assignment, "where_rm" if right else "where")
    except PSLError:
        assume(False)
    draw = random.Random(seed)
    length = draw.randint(1, 6)
    prompt = [draw.choice(["a", "b", "1", "2", "7"]) for _ in range(length)]
    given_values = [draw.choice([None, "a", "b"]) for _ in range(length)]
    run = PSM(program).run(prompt, registers={"other": given_values}, max_new_tokens=0)
    before = run.trace[0][0].cells
    value = next(item.value for production in program.productions for item in production.assignments)
    register = assignment.partition("[")[0]
    for of_N, after in zip(before, run.final, strict=True):
        found = [of_n for of_n in before if holds(condition, of_n, of_N)]
        expected = of_N[register]
        if found:
            of_n = found[-1 if right else 0]
            if not isinstance(value, Reference):
                expected = value
            elif value.function is None:
                expected = of_n[value.register]
            elif (of_n[value.register] or "").isdigit():
                expected = str(int(of_n[value.register]) + 1)
        assert after[register] == expected, (program.source, prompt, given_values)


# ------------------------------------------------------------------------------------------ what newcomers write first


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("where mark[N-1] == 'A':\n  mark[N] = 'B'", "position[n] == position[N]@pos_decrement"),
        ("where position[n] == position[N] + 1:\n  mark[N] = 'B'", "no arithmetic but `@pos_increment`"),
        ("where mark[N] == nil:\n  mark[N] = 'B'", "a register that is never assigned"),
        ("where mark[N] == 'A':\n  mark[N] = nil", "a register that is never assigned"),
        ("where or[N] == 'A':\n  mark[N] = 'B'", "a word of the language"),
    ],
)
def test_hints(body, said):
    with pytest.raises((PSLError), match=said.replace("[", r"\[")):
        load_program(HEAD + body)


def test_one_production_stays_one():
    (production,) = load("mark[n] == 'A'").statements
    assert isinstance(production, Production)
