"""The table of machines: what the command writes, and that a wrong result or state would be seen in it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from hf_mech.hub import Results, check_folder
from hf_mech.programs.psl import PSM, load_program, program_names, program_text
from hf_mech.programs.psl.machine import Run
from tests.training.commands import printed_by
from training.machines import run as trials_run
from training.machines.experiment import EXPERIMENT
from training.machines.report import table_of
from training.machines.run import MACHINES, states
from training.machines.tables import TABLES, palindrome
from training.machines.trials import task_named, task_names


def test_the_command_writes_a_card_of_its_results(tmp_path: Path) -> None:
    card = tmp_path / "cards" / "psl-machines"
    tasks = ["--task", "count", "turing/unary_addition", "universal/increment", "--num_prompts", "2", "--jobs", "1"]
    said = printed_by(EXPERIMENT, "--output_dir", str(tmp_path / "runs"), "--cards_dir", str(card.parent), *tasks)
    check_folder(card)
    measured = Results.load(card / "results.json").results
    assert len(measured) == 3 * 3 * 3
    assert all(entry.values == [1.0] for entry in measured if entry.metric != "cpu_milliseconds_per_prompt")
    assert all(entry.mean > 0 for entry in measured)
    table = EXPERIMENT.results(card.parent)["machines"].splitlines()
    assert len(table) == 5
    assert table[2].startswith("| `count` | 4 |")
    assert table[4].startswith("| `universal/increment` | 5 |")
    assert all("| 2 of 2 |" in row for row in table[2:])
    assert "universal/increment" in said


def test_every_program_is_in_the_table() -> None:
    ways = {name.partition("/")[0] for name in task_names()}
    assert ways == {*program_names(), "turing"}
    assert len(task_names()) == len(program_names()) - 1 + 2 * len(TABLES)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "busy_beaver_4" in name else name for name in task_names()],
)
def test_the_prompts_have_right_results_and_come_again(name: str) -> None:
    task = task_named(name)
    first, again = ([trial(PSM(task.program)) for trial in islice(task.trials(3), 2)] for _ in range(2))
    assert first == again
    assert all(right for _, right in first)
    others = [trial(PSM(task.program))[0] for trial in islice(task.trials(4), 4)]
    assert any(run not in [run for run, _ in first] for run in others) or "pargen" in name


def test_wrong_results_and_states_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that runs another program: its words are wrong, and so are the registers that it says them with."""
    changed = program_text("reverse").replace("@pos_decrement", "@pos_increment")
    monkeypatch.setattr(trials_run, "QKVM", lambda lowered: PSM(load_program(changed)))
    settings = ["--task", "reverse", "--num_prompts", "4", "--jobs", "1", "--output_dir", str(tmp_path)]
    printed_by(EXPERIMENT, *settings)
    (file,) = tmp_path.rglob("outcome.json")
    outcome = EXPERIMENT.load(file.parent)
    assert outcome.right["psm"] == outcome.right["dat"] == 4
    assert outcome.states_equal["psm"] == outcome.states_equal["dat"] == outcome.states_compared
    assert outcome.right["qkvm"] < 4
    assert 0 < outcome.states_equal["qkvm"] < outcome.states_compared
    (row,) = EXPERIMENT.table([outcome]).rows  # type: ignore[union-attr]
    assert row[5] == f"{outcome.right['qkvm']} of 4"
    assert row[6] == f"{outcome.states_equal['qkvm']:,} of {outcome.states_compared:,}"
    assert table_of([]).rows == []
    assert MACHINES == ("psm", "qkvm", "dat")


def test_states_are_every_register_of_every_cell() -> None:
    run: Run = PSM(load_program(program_text("reverse"))).run("a b")
    cells = 2 + 2  # of the prompt, of the completion; before the three layers and after each, six registers
    assert len(list(states(run))) == cells * 4 * 6
    assert len(set(states(run))) == cells * 4 * 6
    shorter = replace(run, trace=run.trace[:1])
    assert list(states(run))[: 2 * 4 * 6] == list(states(shorter))


def test_half_of_the_palindromes_are_some() -> None:
    draw = random.Random(0)
    words = [palindrome(draw).tape for _ in range(200)]
    assert 80 < sum(word == word[::-1] for word in words) < 180
