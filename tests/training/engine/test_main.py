"""The end of a command: a card and a table for each group of runs, and one line for errors of ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.cases import CASES
from tests.training.jobs import runs_of
from tests.training.toy.experiment import EXPERIMENT, Count
from training.engine import SettingsError, main
from training.engine.main import command_of, finished_runs


def command(tmp_path: Path, *arguments: str) -> None:
    main(EXPERIMENT, [*arguments, "--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")])


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """The folder of a finished run."""
    command(tmp_path, "--steps", "5")
    return tmp_path / "runs" / "5-cpu-steps=5-seed0"


def test_a_copy_of_a_run_counts_once(one: Path) -> None:
    shutil.copytree(one, one.with_name("copy"))
    asked = [Count.of("cpu", {"steps": 5}, modulus=5, seed=0)]
    (found,) = finished_runs(EXPERIMENT, asked, one.parent)
    assert list(found) == [one]


def test_runs_of_another_experiment_are_left_alone(one: Path, tmp_path: Path) -> None:
    """One folder for all runs is a natural choice of --output_dir."""
    other = one.with_name("g-2-5-bst-cpu-seed0")
    other.mkdir()
    (other / "outcome.json").write_text(json.dumps({"settings": {"preset": "cpu", "seed": 0, "graph": "g-2-5"}}))
    asked = [Count.of("cpu", {"steps": 5}, modulus=5, seed=0)]
    assert [list(found) for found in finished_runs(EXPERIMENT, asked, one.parent)] == [[one]]
    command(tmp_path, "--steps", "5", "--seeds", "1", "--dry_run")


def test_runs_of_another_preset_have_a_card_of_their_own(one: Path) -> None:
    other = one.with_name("5-paper-steps=5-seed0")
    shutil.copytree(one, other)
    for name in ("run.json", "outcome.json"):
        content = json.loads((other / name).read_text())
        content.get("settings", content)["preset"] = "paper"
        (other / name).write_text(json.dumps(content))
    asked = [Count.of(preset, {"steps": 5}, modulus=5, seed=0) for preset in ("cpu", "paper")]
    assert [list(found) for found in finished_runs(EXPERIMENT, asked, one.parent)] == [[one], [other]]
    assert [list(found) for found in finished_runs(EXPERIMENT, asked[:1], one.parent)] == [[one]]


def test_an_experiment_that_gives_two_cards_one_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(EXPERIMENT), "shares_card", lambda _, settings: settings.seed)
    with pytest.raises(SystemExit) as left:
        command(tmp_path, "--num_seeds", "2", "--steps", "5", "--jobs", "1")
    assert left.value.code == 2
    assert "toy gives two cards one name: toy, toy" in capsys.readouterr().err
    assert not (tmp_path / "cards").exists()


def test_a_run_that_is_asked_for_twice_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(tmp_path, "--preset", "cpu", "cpu", "--dry_run")
    assert capsys.readouterr().out.count("5-cpu-seed0") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [(SettingsError("two\nlines"), 2), (FileNotFoundError("no such file"), 2), (PermissionError("a full disk"), 1)],
)
def test_errors_of_ours_and_of_the_system_are_one_line(
    error: Exception, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*_: Any) -> None:
        raise error

    monkeypatch.setattr(type(EXPERIMENT), "train", train)
    with pytest.raises(SystemExit) as left:
        command(tmp_path)
    assert left.value.code == code
    assert capsys.readouterr().err.count("\n") == 1


def test_a_bug_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(type(EXPERIMENT), "train", train)
    with pytest.raises(KeyError, match="a bug"):
        command(tmp_path)


PYTHON = "python -m training.train "


@pytest.mark.parametrize(
    ("name", "commands", "repeats"),
    [
        ("toy", ["--seeds 1 --steps 5 --output_dir ctl6"], ["--seeds 1 --steps 5 --output_dir ctl6"]),
        (
            "toy",
            ["--num_seeds 2 --jobs 1", "--seeds 2..4 --output_dir ctl6"],
            ["--modulus 5 --preset cpu --seeds 0..4"],
        ),
        (
            "toy",
            ["--seeds 3,5", "--seeds 3 --steps 7", "--seeds 3 --modulus 7"],
            [
                "--modulus 5 --preset cpu --seeds 3,5",
                "--modulus 5 --preset cpu --seeds 3 --steps 7",
                "--modulus 7 --preset cpu --seeds 3",
            ],
        ),
        (
            "pargen",
            ["--split test --num_prompts 20", "--split dev --num_prompts 20 --jobs 1"],
            ["--program pargen --task 1_shot_rlw --split test dev --preset whole --seeds 0 --num_prompts 20"],
        ),
        (  # no setting says how many prompts
            "pargen",
            ["--split test --num_prompts 20", "--split dev --num_prompts 10"],
            ["--split test --num_prompts 20", "--split dev --num_prompts 10"],
        ),
    ],
)
def test_a_card_names_a_command_that_repeats_it(name: str, commands: list[str], repeats: list[str]) -> None:
    experiment = CASES[name].experiment
    outcomes = [
        SimpleNamespace(settings=run, origin={"command": PYTHON + command})
        for command in commands
        for run in runs_of(experiment, *command.split())
    ]
    made = command_of(experiment, outcomes, experiment.options(output_dir="runs"))
    assert made.split(" && ") == [PYTHON + command for command in repeats]


def test_a_card_names_no_file_of_options(tmp_path: Path) -> None:
    """The file need not be where the card is read."""
    file, run = tmp_path / "run.yaml", Count.of("cpu", {"steps": 5}, modulus=5, seed=3)
    file.write_text("steps: 5\nseeds: 3\n")
    origin = {"command": f"{PYTHON}--config_file {file}"}
    made = command_of(EXPERIMENT, [SimpleNamespace(settings=run, origin=origin)], EXPERIMENT.options(output_dir="runs"))
    assert made == f"{PYTHON}--modulus 5 --preset cpu --seeds 3 --steps 5"
