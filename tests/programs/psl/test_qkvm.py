"""The QKV machine: agreement with the PSM on random programs, and (62) on hand-written queries, keys and values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.compile import lower_program
from hf_mech.programs.psl.machine import Path, Run
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.qkvl import QKVLProduction, QKVLProgram, QKVLRepeat
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import LIMIT, assert_same_runs, outcome, programs, prompts


def agree(program: Program, prompt: list[str]) -> None:
    """PSM and QKVM do the same, and so does the QKVM on the program as written to a file."""
    psm = outcome(PSM(program), prompt)
    lowered = lower_program(program, LIMIT)
    assert_same_runs(psm, outcome(QKVM(lowered), prompt))
    assert QKVLProgram.from_json(json.loads(json.dumps(lowered.to_json()))) == lowered
    event("a run" if isinstance(psm, Run) else psm.partition(" ")[0])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts())
def test_psm_and_qkvm_agree_on_every_state_of_every_cell_at_every_layer(program: Program, prompt: list[str]) -> None:
    agree(program, prompt)


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts())
def test_psm_and_qkvm_agree_in_many_cases(program: Program, prompt: list[str]) -> None:
    """Other ones in every run."""
    agree(program, prompt)


def machine(*weights: QKVLProduction | QKVLRepeat, **more: Any) -> QKVM:
    names = {"symbol": "s", "position": "p", "mark": "m", "seen": "w"}
    system = {"symbol": "symbol", "position": "position", "output": "mark"}
    json = QKVLProgram(names, {}, system, weights, **more).to_json()
    return QKVM(QKVLProgram.from_json(json))


def marks(layer: QKVLProduction, prompt: str, **more: Any) -> list[str | None]:
    return [cell["mark"] for cell in machine(layer, **more).run(prompt, max_new_tokens=0).final]


SAME = {"q": {"s": "s"}, "k": {"s": "s"}, "v": {"m": "p"}}


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (QKVLProduction(**SAME), ["1", "2", "1", "2"]),
        (QKVLProduction(**SAME, right_match=True), ["3", "4", "3", "4"]),
        (QKVLProduction(**SAME, right_match=True, causal_attn=True), ["1", "2", "3", "4"]),
        (QKVLProduction({"s": "s"}, {"s": ["!=", "s"]}, {"m": "p"}), ["2", "1", "2", "1"]),
        (QKVLProduction({"s": ["!=", "s"]}, {"s": "s"}, {"m": "p"}, causal_attn=True), [None, "1", "2", "1"]),
        (QKVLProduction({"p": "p"}, {"p": "p@pos_increment"}, {"m": "s"}), [None, "A", "B", "A"]),
        (QKVLProduction({"p": "p@pos_increment"}, {"p": "p"}, {"m": "s"}), ["B", "A", "B", None]),
        (QKVLProduction({"s": "s"}, {"s": ["in", "B", "s"]}, {"m": ["in", "s"]}), [None, "s", None, "s"]),
        (QKVLProduction({"s": ["not in", "A"]}, {"s": "s"}, {"m": "p"}), ["2"] * 4),
        (QKVLProduction({"s": "A"}, {"s": "s"}, {"m": "X"}), ["X"] * 4),
        (QKVLProduction({}, {}, {"m": "s"}), ["A"] * 4),
        (QKVLProduction({"s": "s"}, {"s": ["in"]}, {"m": "s"}), [None] * 4),
    ],
)
def test_attention_of_62c(layer: QKVLProduction, expected: list[str | None]) -> None:
    assert marks(layer, "A B A B") == expected


def test_nil_is_a_value_and_an_undefined_image_is_none() -> None:
    # nil matches nil, and does not match a constant
    assert marks(QKVLProduction({"w": "w"}, {"w": "m"}, {"m": "p"}), "A B") == ["1", "1"]
    assert marks(QKVLProduction({"w": "w"}, {"w": "X"}, {"m": "p"}), "A B") == [None, None]
    # nil is copied
    assert marks(QKVLProduction({"p": "p"}, {"p": "p"}, {"m": "w"}), "A B", initial={"m": "X"}) == [None, None]
    # nil and letters have no neighbour: not even each other's
    undefined = {"w": "w@pos_increment"}
    assert marks(QKVLProduction(undefined, {"w": "s@pos_increment"}, {"m": "p"}), "A B") == [None, None]
    assert marks(QKVLProduction(undefined, {"w": "w"}, {"m": "p"}), "A B") == [None, None]
    # `!=` an undefined image always holds; an undefined image satisfies no condition
    assert marks(QKVLProduction({"w": ["!=", "w@pos_increment"]}, {"w": "w"}, {"m": "p"}), "A B") == ["1", "1"]
    assert marks(QKVLProduction(undefined, {"w": ["!=", "X"]}, {"m": "p"}), "A B") == [None, None]


def test_repeat_blocks_end_by_no_change_by_a_condition_or_by_an_error() -> None:
    spread = QKVLProduction({"p`": "p@pos_decrement", "m": "m"}, {"p`": "p", "m": ["!=", "X"]}, {"m": "m"})
    start = QKVLProduction({"p": "p"}, {"p": "1"}, {"m": "X"})
    assert_ran = machine(start, QKVLRepeat((spread,))).run("A B C D", max_new_tokens=0)
    assert [cell["mark"] for cell in assert_ran.final] == ["X"] * 4
    assert [step.path for step in assert_ran.trace[0]] == [Path(0), Path(1), *(Path(2, (j,)) for j in range(1, 5))]

    until = QKVLProduction({"m": "m", "p": "p"}, {"m": "X", "p": "3"})
    ended = machine(start, QKVLRepeat((spread,), until)).run("A B C D", max_new_tokens=0)
    assert [cell["mark"] for cell in ended.final] == ["X", "X", "X", None]

    with pytest.raises(ProgramsError, match="after 3 repetitions"):
        machine(start, QKVLRepeat((spread,), bound=3)).run("A B C D")


def test_registered_functions_come_as_tables() -> None:
    layer = QKVLProduction({"s": "s@turn"}, {"s": "s"}, {"m": "p"})
    assert marks(layer, "L R C", functions={"turn": {"L": "R", "R": "L"}}) == ["2", "1", None]
