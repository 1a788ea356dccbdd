"""PSM and QKVM on programs as they are written: those of the package, and texts with all of the language."""

from __future__ import annotations

import pytest

from hf_mech.programs.psl.compile import lower_program
from hf_mech.programs.psl.library import load_program, read_program
from hf_mech.programs.psl.machine import Path, Run
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import assert_same_runs

SWAP = "Q B C V D E A D E V B C Q F G V J K L A"
"""(27), the prompt of App. A."""

ALL_OF_THE_LANGUAGE = """
# Comments, of both kinds.
registers: {symbol: 's', position: 'p', mark: 'm', count: 'c', goal: 'a', last: 'z'}
constants: {X, go: "s"}  // the value of `go` is the short name of a register
system: {symbol: symbol, position: position, output: mark, parse: goal, eop: last}
initial: {count: 0}
stop: ["."]
causal_attn: true
where_rm symbol[n] not in [X, "."] and position[n] != position[N]:
    mark[N] = symbol[n]
causal_attn: false
repeat 40:
    where (count[N] != 3 and
           last[N] == "EOP"):
        count[N] = position[N]
    repeat:
        where mark[n] == X and position[N] == position[n]@pos_increment:
            mark[N] = X
    until NO_CHANGE
    where position[N] in [1, 2] and mark[N] != count[N]:
        mark[N] = go
until position[n] == 2 and mark[n] == go
where mark[n] == symbol[N]:
    goal[N] = count[n]
"""


def both(program: Program, prompt: str, max_new_tokens: int = 20) -> Run:
    """The run of the PSM, which is that of the QKVM, too."""
    run = PSM(program).run(prompt, max_new_tokens=max_new_tokens)
    assert_same_runs(run, QKVM(lower_program(program)).run(prompt, max_new_tokens=max_new_tokens))
    return run


@pytest.mark.parametrize("name", ["pargen", "pargen_k_shot"])
def test_programs_of_the_package_on_the_swap_prompt(name: str) -> None:
    """(98): J K L V F G, in both machines at every layer."""
    assert both(read_program(name), SWAP).completion == ["J", "K", "L", "V", "F", "G"]


def test_pargen_in_numbers() -> None:
    """31 productions (App. B), and the registers that the machine's queries and keys need beside them."""
    program = read_program("pargen")
    lowered = lower_program(program)
    assert len(list(lowered.productions)) == 31
    assert len(lowered.register_map) == len(program.registers)
    assert {register.rstrip("`") for register in lowered.registers} <= set(program.registers.values())


def test_all_of_the_language() -> None:
    run = both(load_program(ALL_OF_THE_LANGUAGE), "X a b . c", max_new_tokens=4)
    assert run.trace[0][-1].path == Path(5)
    assert [cell["mark"] for cell in run.trace[0][-1].cells[:2]] == ["s", "s"]


BACKWARDS = """
registers: {symbol: 's', position: 'p', next: 'x', place: 'q', left: 'l', nothing: 'o', part: 'a', last: 'z'}
constants: {}
system: {symbol: symbol, position: position, output: next, parse: part, eop: last}
where part[N] == 1 and last[N] == "EOP":  # the prompt's last cell begins with its own word
    place[N] = position[N]
    part[N] = 0
where part[N] == 0:  # at the end the generation ends by itself
    next[N] = nothing[N]
where part[N] == 0 and position[n] == place[N]:
    next[N] = symbol[n]
where part[N] == 0:
    left[N] = "0"
where part[N] == 0 and position[n] == place[N]@pos_decrement:
    left[N] = position[n]
where part[N] == 0:
    place[N] = left[N]
"""


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_a_prompt_of_any_length_backwards(count: int) -> None:
    """A place that is carried forward from cell to cell, one further left each time."""
    words = [f"w{index}" for index in range(count)]
    run = both(load_program(BACKWARDS), " ".join(words), max_new_tokens=20)
    assert run.completion == words[::-1]
