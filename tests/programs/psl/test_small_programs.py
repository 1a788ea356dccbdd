"""The small programs of the package against plain Python: random prompts, in every machine and every backend."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hf_mech.cli import programs
from hf_mech.cli.app import app
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import PSM, load_program, program_names, program_text
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.agreement import Everywhere
from training.machines.words import FORMS, INDUCTION_WORDS, Words, any_words, induction

LIMIT = 64
"""The greatest position of the compiled programs."""


@cache
def everywhere(name: str) -> Everywhere:
    return Everywhere(program(name), LIMIT, num_open_values=64)


def program(name: str) -> Program:
    return load_program(program_text(name), name)


def completion(name: str, prompt: str) -> str:
    return " ".join(PSM(program(name)).run(prompt, max_new_tokens=20).completion)


# ---------------------------------------------------------------------------------------------------------- the tests


def test_these_are_the_small_programs():
    assert {*FORMS, "nested_functions", "pargen", "pargen_k_shot", "universal"} == set(program_names())


def test_the_page_of_the_language_lists_them():
    page = (Path(programs.__file__).parents[1] / "programs" / "psl" / "README.md").read_text("utf-8")
    rows = page.partition("## Small programs")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_every_machine_says_what_python_says_and_has_the_same_states(name):
    function, form = FORMS[name]
    draw = random.Random(f"{name} everywhere")
    for _ in range(5):
        prompt = form(draw, 12)
        run = everywhere(name).run(prompt, max_new_tokens=INDUCTION_WORDS if name == "induction" else LIMIT)
        assert run.completion == function(prompt), prompt


@pytest.mark.parametrize("name", FORMS)
def test_many_prompts_are_right(name):
    """In the PSM, which the test above compares with the others; up to 40 words."""
    function, form = FORMS[name]
    draw = random.Random(f"{name} alone")
    machine = PSM(program(name))
    for _ in range(60):
        prompt = form(draw, draw.choice([8, 16, 40]))
        run = machine.run(prompt, max_new_tokens=INDUCTION_WORDS if name == "induction" else 100)
        assert run.completion == function(prompt), prompt


@pytest.mark.parametrize("name", [name for name in FORMS if name != "induction"])
def test_the_longest_prompts_are_right(name):
    """A prompt and its completion that fill all positions; one word more, and no cell is left."""
    function, form = FORMS[name]
    draw = random.Random(f"{name} long")
    machine, network = PSM(program(name)), DAT(everywhere(name).model, everywhere(name).tokenizer)
    everywhere(name).model.config.backend = "gather"
    prompt = longest(form, function, draw)
    assert network.run(prompt).completion == function(prompt)
    for runner in (machine.run, everywhere(name).machines[1].run):
        run = runner(prompt, max_new_tokens=LIMIT, max_position_embeddings=LIMIT)
        assert run.completion == function(prompt)
    with pytest.raises(ProgramsError):
        machine.run(prompt, max_position_embeddings=LIMIT - 1)


def test_the_longest_induction_is_right():
    """It never ends by itself: 57 words and 7 cells of the completion, whose eighth word needs none."""
    prompt = any_words(random.Random(4), 7) * 57
    runs = [
        everywhere("induction").machines[0].run(prompt[:57], max_new_tokens=8, max_position_embeddings=LIMIT),
        DAT(everywhere("induction").model, everywhere("induction").tokenizer).run(prompt[:57], 8),
    ]
    assert [run.completion for run in runs] == [induction(prompt[:57])] * 2
    with pytest.raises(ProgramsError):
        runs[0] = everywhere("induction").machines[0].run(prompt[:57], max_position_embeddings=LIMIT)


def longest(form: Callable[..., Words], function: Callable[[Words], Words], draw: random.Random) -> Words:
    """A prompt of the form that fills LIMIT cells together with its completion."""
    drawn = iter(lambda: form(draw, LIMIT), None)
    return next(prompt for prompt in drawn if len(prompt) + len(function(prompt)) == LIMIT)


def test_deep_brackets_and_long_carries():
    deep = "( " * 20 + ") " * 20
    assert completion("balanced", deep) == "balanced"
    assert completion("balanced", deep.replace(") )", ") ]", 1)) == "unbalanced"
    assert completion("binary_addition", "1 " * 18 + "+ 1") == " ".join("1" + "0" * 18)
    assert completion("binary_addition", "1 + " + "1 " * 18) == " ".join("1" + "0" * 18)


@pytest.mark.parametrize(
    ("name", "prompt", "said"),
    [
        ("sort", "a b", ""),
        ("sort", "a b |", ""),
        ("sort", "b a | x b y a", "b a"),
        ("sort", "b a b | a b b", "b b a"),
        ("sort", "b a | b | a", "b a |"),
        ("balanced", "no bracket", "balanced"),
        ("binary_addition", "+ 1 0", "1 0"),
        ("binary_addition", "1 0 +", "1 0"),
        ("binary_addition", "0 1 0", "0 1 0"),
        ("binary_addition", "+", ""),
        ("induction", "a b c", ""),
    ],
)
def test_prompts_of_another_form(name, prompt, said):
    """What the comments of the programs say of them."""
    assert completion(name, prompt) == said
    assert " ".join(everywhere(name).run(prompt).completion) == said


@pytest.mark.parametrize("name", FORMS)
def test_the_example_of_the_comment_is_right(name):
    examples = [
        half.split("->")
        for line in program_text(name).splitlines()
        if line.startswith("#   ")
        for half in line.strip("# ").split("          ")
    ]
    assert examples
    for prompt, said in examples:
        expected, cut, _ = said.strip().partition(" ...")
        found = completion(name, prompt)
        assert found.startswith(expected) if cut else found == expected


@pytest.mark.parametrize("name", FORMS)
def test_the_command_runs_them(name):
    function, form = FORMS[name]
    prompt = form(random.Random(name), 8)
    for machine in ("dat", "psm", "qkvm"):
        ended = CliRunner().invoke(app, ["run", name, " ".join(prompt), "--max-new-tokens", "8", "--machine", machine])
        said = " ".join(function(prompt))
        assert (ended.exit_code, ended.stdout) == (0, said + "\n")
        assert ended.stderr == "" if said else ended.stderr.startswith("hf-mech: warning: The completion is empty.")


def test_the_commands_help_names_the_programs():
    assert tuple(programs._PACKAGED.split(", ")) == program_names()


def test_the_programs_are_short():
    assert all(len(program_text(name).splitlines()) <= 80 for name in FORMS)
