"""PSM, QKVM and DAT agree on every register of every cell after every layer: the compiler is right."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.compile import compile_program, lower_program
from hf_mech.programs.psl.library import load_program, read_program
from hf_mech.programs.psl.machine import Run
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import LIMIT, assert_same_runs, kind, outcome, programs, prompts
from tests.programs.templatic.paper_prompts import BOX_2, NINE, SWAP

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def network_outcome(network: DAT, prompt: list[str]) -> Run | str:
    try:
        return network.run(prompt, max_new_tokens=3)
    except ProgramsError as error:
        return kind(error)


def assert_agreement(program: Program, prompt: list[str]) -> None:
    lowered = lower_program(program, LIMIT)
    meaning = outcome(PSM(program), prompt)
    assert_same_runs(meaning, outcome(QKVM(lowered), prompt))
    model, tokenizer = compile_program(lowered, max_position_embeddings=LIMIT, num_open_values=4)
    for backend in ("gather", "dense"):
        model.config.backend = backend
        assert_same_runs(meaning, network_outcome(DAT(model, tokenizer), prompt))


@settings(RELAXED, max_examples=20)
@given(programs(), prompts())
def test_random_programs(program: Program, prompt: list[str]) -> None:
    assert_agreement(program, prompt)


@pytest.mark.slow
@settings(RELAXED, max_examples=2_000)
@given(programs(), prompts())
def test_many_random_programs(program: Program, prompt: list[str]) -> None:
    """Other ones in every run."""
    assert_agreement(program, prompt)


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["pargen", "pargen_k_shot"])
def test_programs_of_the_package_on_the_papers_prompts(name: str, few: bool) -> None:
    """Sec. 7.2.4, Box 2 and (27): all three machines, at every layer."""
    program = read_program(name)
    psm, qkvm, network = PSM(program), QKVM(lower_program(program)), DAT(*compile_program(program))
    chosen = [*NINE.values(), *BOX_2.values()]
    for prompt, completion in [*(chosen[::5] if few else chosen), SWAP]:
        meaning = psm.run(prompt)
        assert meaning.completion == completion.split()
        assert_same_runs(meaning, qkvm.run(prompt))
        assert_same_runs(meaning, network.run(prompt))


LIKE_MARKS = """
registers: {symbol: 's', position: 'p', said: 'x'}
system: {symbol: symbol, position: position, output: said}
constants: {nothing: "<nil>"}
stop: ["<eop>"]
where position[N] == position[N]:
    said[N] = symbol[N]
where symbol[n] == nothing and position[n] == position[N]@pos_decrement:
    said[N] = nothing
where symbol[n] == "a<nil>b" and position[n] == position[N]@pos_decrement:
    said[N] = "<eop>"
"""
"""Says the last word again; after a constant, or a stop word, that look like the marks of the tokenizer, says these."""


@pytest.mark.parametrize("prompt", ["a <nil>", "<nil>", "<eop> b", "<nil> a", "b <eop>", "a a<nil>b", "a<nil>b c"])
def test_words_that_look_like_marks(prompt: str) -> None:
    assert_agreement(load_program(LIKE_MARKS), prompt.split())
    plain = LIKE_MARKS.partition("where symbol")[0].replace('nothing: "<nil>"', "").replace('"<eop>"', '"."')
    assert_agreement(load_program(plain), prompt.split())
