"""A program with twice the tests takes twice the work: calls are counted, no time is measured."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hf_mech.models.dat import DATConfig
from hf_mech.programs.psl import QKVM, check_program, load_program, lower_program, parse_program
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.psl.values import value_sets
from tests.programs.psl.random_programs import assert_same_runs

HEAD = """
registers: {symbol: 's', position: 'p', said: 'x'}
system: {symbol: symbol, position: position, output: said}
"""


def production(tests: int, test: str = "symbol[n] != 'w%d'") -> str:
    return f"{HEAD}where {' and '.join(test % i for i in range(tests))}:\n    said[N] = symbol[n]\n"


def calls(function: Callable[[], Any]) -> int:
    """The calls of Python and built-in functions, and the steps of generators."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # other tests' finalizers would be counted
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


PASSES: dict[str, tuple[Callable[[str], Any], Callable[[Any], Any]]] = {
    "parse": (str, parse_program),
    "check": (parse_program, check_program),
    "values": (parse_program, value_sets),
    "lower": (parse_program, lower_program),
    "configure": (lambda text: lower_program(parse_program(text)).to_json(), lambda qkvl: DATConfig(qkvl=qkvl)),
}
"""What a step starts with, made of the text, and the step itself."""


@pytest.mark.parametrize("test", ["symbol[n] != 'w%d'", "symbol[N] != 'w%d'", "said[n] in ['w%d', 'v']"])
@pytest.mark.parametrize("step", PASSES)
def test_twice_the_tests_are_twice_the_calls(step: str, test: str) -> None:
    before, run = PASSES[step]
    run(before(production(2, test)))  # what is done once for all programs
    few, many = (calls(partial(run, before(production(number, test)))) for number in (50, 100))
    assert few > 50
    assert many < 2.1 * few


def test_names_of_targets_stay_short() -> None:
    lowered = lower_program(load_program(production(300)))
    (layer,) = lowered.weights
    assert len(layer.q) == 300
    assert list(layer.q)[:10] == [*(f"s{'`' * times}" for times in range(1, 9)), "s`9", "s`10"]
    assert max(map(len, layer.q)) == 9


@pytest.mark.parametrize("prompt", ["a", "w3", "w7 w280 b", "w1 w299"])
def test_every_one_of_many_tests_counts(prompt: str) -> None:
    program = load_program(production(300))
    assert_same_runs(PSM(program).run(prompt), QKVM(lower_program(program)).run(prompt))
    said = PSM(program).run(prompt, max_new_tokens=1).completion
    assert said == [word for word in prompt.split() if word in ("a", "b")][:1]
