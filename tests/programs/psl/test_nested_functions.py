"""The program of (89) in three machines: the same states, and the completions of the reference."""

from __future__ import annotations

import pytest

from hf_mech.programs.nested_functions.calls import SPLITS
from hf_mech.programs.nested_functions.grammar import generate, read_prompt
from hf_mech.programs.psl.compile import compile_program, lower_program
from hf_mech.programs.psl.library import complete_batch, program_text, read_program
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.network import DAT
from tests.programs.psl.random_programs import assert_same_runs

PROMPTS = (
    "swap ( x , y ) -> y x ; twice ( x ) -> x x ; swap ( twice ( a b ) , swap ( c , d ) ) ->",
    "f ( x ) -> g ( x ) q ; g ( y ) -> y and y ; f ( g ( a ) b ) c ->",
    pytest.param(
        "f ( a , b , c , d ) -> d c q b a ; f ( f ( 1 , 2 , 3 , 4 ) , x , f ( p , 2 , 3 , 4 ) , y ) ->",
        marks=pytest.mark.slow,
    ),
    "only ( x , y ) -> x ; only ( START , only ( 0 , 1 ) ) ->",
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_three_machines_agree_in_every_state(prompt: str) -> None:
    program = read_program("nested_functions")
    model, tokenizer = compile_program(program)
    wanted = PSM(program).run(prompt, max_new_tokens=200)
    assert " ".join(wanted.completion) == read_prompt(prompt).completion()
    assert_same_runs(wanted, QKVM(lower_program(program)).run(prompt, max_new_tokens=200))
    assert_same_runs(wanted, DAT(model, tokenizer).run(prompt, max_new_tokens=200))


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_is_evaluated(split: str) -> None:
    model, tokenizer = compile_program(program_text("nested_functions"), num_open_values=700)
    examples = list(generate("rlw", split, seed=7, stop=6))
    said = complete_batch(model, tokenizer, [example.prompt for example in examples], max_new_tokens=500)
    assert [(one.text, one.ended) for one in said] == [(example.completion, True) for example in examples]
