"""The end of a command: a card and a table for each group of runs, and one line for errors of ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.training.toy.experiment import EXPERIMENT, Count
from training.engine import SettingsError, main
from training.engine.main import finished_runs


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


def test_two_cards_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command(tmp_path, "--preset", "cpu,paper", "--steps", "5", "--jobs", "1")
    assert left.value.code == 2
    assert "Two cards would have one name: toy, toy" in capsys.readouterr().err
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
