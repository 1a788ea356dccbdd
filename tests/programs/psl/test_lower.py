"""The lowering against the paper: Table (65), App. J's samples, productions of App. B, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.compile import lower_program
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.values import register_function, unregister_function

REGISTERS = {
    "symbol": "s", "position": "p", "parse": "a", "region": "r", "type": "t", "field": "f",
    "prev_region": "r*", "prev_symbol": "s*", "prev_position": "p*", "prev_field": "f*", "index": "d",
}  # fmt: skip


def reference(text: str) -> Reference:
    """`register[cell]@function`."""
    register, _, rest = text.partition("[")
    cell, _, function = rest.partition("]@")
    return Reference(register, cell.rstrip("]"), function or None)


def test_of(left: str, operator: str, right: str | tuple[str, ...]) -> Test:
    """A test whose right side is a reference where it has a bracket."""
    if isinstance(right, str) and "[" in right:
        return Test(reference(left), operator, reference(right))
    return Test(reference(left), operator, Constants((right,) if isinstance(right, str) else right))


def production(*tests: Test, comment: str = "", **assignments: str) -> Production:
    """A production that assigns constants, or references where there is a bracket."""
    values = {name: reference(value) if value.endswith("]") else value for name, value in assignments.items()}
    return Production(tests, tuple(Assignment(name, value) for name, value in values.items()), comment=comment)


def program(*statements: Production | Repeat, **more: Any) -> Program:
    system = {"symbol": "symbol", "position": "position", "output": "symbol", "parse": "parse"}
    return Program(registers=REGISTERS, constants={"XQ": "XQ"}, system=system, statements=statements, **more)


def lowered(*tests: Test, **assignments: str) -> dict[str, Any]:
    """Query, key and value of one production."""
    return lower_program(program(production(*tests, **assignments))).to_json()["weights"][0]["weights"]


test_of.__test__ = False  # type: ignore[attr-defined]

POSITION_IS_ONE = test_of("position[n]", "==", "1")


@pytest.mark.parametrize(
    ("test", "query", "key"),
    [
        (test_of("type[N]", "==", "C"), {"t": "t"}, {"t": "C"}),
        (test_of("type[N]", "!=", "C"), {"t": "t"}, {"t": ["!=", "C"]}),
        (test_of("type[N]", "in", ("C", "D")), {"t": "t"}, {"t": ["in", "C", "D"]}),
        (test_of("type[N]", "not in", ("C",)), {"t": "t"}, {"t": ["not in", "C"]}),
        (test_of("type[n]", "==", "C"), {"t`": "C"}, {"t`": "t"}),
        (test_of("type[n]", "!=", "C"), {"t`": ["!=", "C"]}, {"t`": "t"}),
        (test_of("type[n]", "in", ("C", "D")), {"t`": ["in", "C", "D"]}, {"t`": "t"}),
        (test_of("symbol[n]", "==", "type[N]"), {"s`": "t"}, {"s`": "s"}),
        (test_of("symbol[n]", "!=", "type[N]"), {"s`": ["!=", "t"]}, {"s`": "s"}),
        (test_of("position[n]", "==", "position[N]@pos_decrement"), {"p``": "p@pos_decrement"}, {"p``": "p"}),
        (test_of("symbol[N]", "==", "type[n]@pos_increment"), {"t`": "s"}, {"t`": "t@pos_increment"}),
        (test_of("symbol[N]", "!=", "type[n]@pos_increment"), {"t`": "s"}, {"t`": ["!=", "t@pos_increment"]}),
    ],
)
def test_table_65_and_its_extensions(test: Test, query: dict[str, Any], key: dict[str, Any]) -> None:
    """Beside a test that reads n, which takes p`."""
    weights = lowered(POSITION_IS_ONE, test, region="XQ", field="field[n]")
    assert weights == {"q": {"p`": "1", **query}, "k": {"p`": "p", **key}, "v": {"r": "XQ", "f": "f"}}


@pytest.mark.parametrize(
    ("test", "query", "key"),
    [
        (test_of("type[N]", "==", "C"), {"t": "t", "p": "p"}, {"t": "C", "p": "p"}),
        (test_of("prev_field[N]", "!=", "field[N]"), {"f*": "f*", "p": "p"}, {"f*": ["!=", "f"], "p": "p"}),
        (
            test_of("prev_position[N]", "==", "position[N]@pos_decrement"),
            {"p*": "p*", "p": "p"},
            {"p*": "p@pos_decrement", "p": "p"},
        ),
        (test_of("position[N]", "==", "position[N]"), {"p": "p"}, {"p": "p"}),
        (test_of("position[N]", "!=", "1"), {"p": "p", "p`": "p"}, {"p": ["!=", "1"], "p`": "p"}),
    ],
)
def test_a_production_without_n_matches_its_own_position(test: Test, query: Any, key: Any) -> None:
    """P10 of (99) is the second."""
    assert lowered(test, index="0", field="position[N]") == {"q": query, "k": key, "v": {"d": "0", "f": "p"}}


def test_two_tests_of_one_register_and_cell_both_count() -> None:
    weights = lowered(
        test_of("symbol[n]", "!=", "A"),
        test_of("symbol[n]", "!=", "symbol[N]"),
        test_of("symbol[n]", "!=", "A"),
        test_of("type[N]", "!=", "C"),
        test_of("type[N]", "!=", "D"),
        region="XQ",
    )
    assert weights["q"] == {"s`": ["!=", "A"], "s``": ["!=", "s"], "t": "t", "t`": "t"}
    assert weights["k"] == {"s`": "s", "s``": "s", "t": ["!=", "C"], "t`": ["!=", "D"]}


def test_a_constant_that_reads_as_a_register_stays_a_constant() -> None:
    weights = lowered(
        test_of("symbol[n]", "==", "s"),
        test_of("symbol[N]", "!=", "p@pos_increment"),
        region="r",
        field="who@example.org",
    )
    assert weights["q"] == {"s`": ["in", "s"], "s": "s"}
    assert weights["k"] == {"s`": "s", "s": ["not in", "p@pos_increment"]}
    assert weights["v"] == {"r": ["in", "r"], "f": "who@example.org"}


def test_sample_production_of_appendix_j() -> None:
    """P1b: q, k and v as in (99)."""
    start_cue = production(
        test_of("symbol[n]", "==", "symbol[N]"),
        POSITION_IS_ONE,
        test_of("position[N]", "!=", "1"),
        test_of("parse[N]", "==", "1"),
        comment="// parse step 1b. start Cue",
        region="CQ",
        type="D",
        field="FQ",
    )
    assert lower_program(program(start_cue)).to_json()["weights"] == [
        {
            "layer_comment": "// parse step 1b. start Cue",
            "causal_attn": False,
            "right_match": False,
            "weights": {
                "q": {"s`": "s", "p`": "1", "p": "p", "a": "a"},
                "k": {"s`": "s", "p`": "p", "p": ["!=", "1"], "a": "1"},
                "v": {"r": "CQ", "t": "D", "f": "FQ"},
            },
        }
    ]


def test_sample_repeat_of_appendix_j() -> None:
    previous = production(
        test_of("position[n]", "==", "position[N]@pos_decrement"),
        test_of("parse[N]", "==", "1"),
        prev_region="region[n]",
    )
    propagate = production(
        test_of("prev_region[N]", "==", "XQ"),
        test_of("region[N]", "==", "R"),
        test_of("parse[N]", "==", "1"),
        region="XQ",
    )
    block = Repeat((previous, propagate), comment="// repeat pre_2a, 2a. propagate XQ rightward")
    (repeat,) = lower_program(program(block)).to_json()["weights"]
    assert repeat["layer_comment"] == "// repeat pre_2a, 2a. propagate XQ rightward"
    assert (repeat["until"], repeat["bound"]) == ({}, 1000)
    assert [layer["weights"] for layer in repeat["weights"]] == [
        {"q": {"p`": "p@pos_decrement", "a": "a"}, "k": {"p`": "p", "a": "1"}, "v": {"r*": "r"}},
        {
            "q": {"r*": "r*", "r": "r", "a": "a", "p": "p"},
            "k": {"r*": "XQ", "r": "R", "a": "1", "p": "p"},
            "v": {"r": "XQ"},
        },
    ]


def test_flags_conditions_and_declarations() -> None:
    layer = Production((POSITION_IS_ONE,), (Assignment("region", "XQ"),), right_match=True, causal=True)
    until = (test_of("region[N]", "in", ("XQ", "CQ")),)
    lower = lower_program(
        program(
            Repeat((layer, Repeat((layer,), bound=7)), until),
            watch=("region",),
            initial={"type": "T"},
            values={"region": ("XQ", "CQ")},
            stop=(".",),
        )
    )
    json = lower.to_json()
    assert json["weights"][0]["until"] == {"q": {"r": "r", "p": "p"}, "k": {"r": ["in", "XQ", "CQ"], "p": "p"}}
    assert json["weights"][0]["weights"][0]["right_match"] is True
    assert json["weights"][0]["weights"][0]["causal_attn"] is True
    assert json["weights"][0]["weights"][1]["bound"] == 7
    assert {key: json[key] for key in ("watch_list", "initial", "values", "stop", "functions", "system_map")} == {
        "watch_list": ["region"],
        "initial": {"t": "T"},
        "values": {"r": ["XQ", "CQ"]},
        "stop": ["."],
        "functions": {},
        "system_map": {"symbol": "symbol", "position": "position", "output": "symbol", "parse": "parse"},
    }
    assert len(list(lower.productions)) == 2
    assert lower.registers == (*REGISTERS.values(), "p`")


def test_the_tables_of_registered_functions_go_with_the_program() -> None:
    register_function("turn", {"L": "R", "1": "one", "3": "three"}.get)
    try:
        turned = program(production(test_of("type[n]", "==", "type[N]@turn"), type="L"))
        lower = lower_program(turned, max_position_embeddings=2)
    finally:
        unregister_function("turn")
    assert lower.functions == {"turn": {"1": "one", "L": "R"}}
    assert lower.to_json()["weights"][0]["weights"]["q"] == {"t`": "t@turn"}


@pytest.mark.parametrize(
    "layer",
    [
        production(test_of("symbol[n]", "==", "type[n]"), region="XQ"),
        production(test_of("symbol[N]", "!=", "type[N]"), POSITION_IS_ONE, region="XQ"),
        production(test_of("symbol[N]", "!=", "type[N]"), region="field[n]"),
        production(POSITION_IS_ONE, region="field[N]"),
        production(position="1"),
    ],
)
def test_what_no_query_and_key_express_is_refused(layer: Production) -> None:
    with pytest.raises(ProgramsError):
        lower_program(program(layer))
