"""Runs that earlier versions left are read, not trained again. `older_runs` holds one of each experiment, as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.training.cases import CASES
from training.engine import migration
from training.engine.migration import migrate
from training.engine.runner import run_one

OLDER = Path(__file__).parent / "older_runs"
NAMES = {
    "strips": ["simple-50-redraw-max_steps=1000-num_test=100-seeds=0..2"],
    "formal_languages": [
        "reverse_string-mlm-stack_rnn-none-cpu-steps=60-batch_size=2-restart_after=25-max_train_length=8-test_samples=1"
        "-seed0"
    ],
    "lm": [
        "6d37a7996266/clm-pretrained-gated-cpu-layers=1-hidden=16-heads=2-epochs=2-seed0",
        "6d37a7996266/clm-pretraining-vanilla-cpu-layers=1-hidden=16-heads=2-epochs=1-seed0",
    ],
    "templatic": [
        "1_shot_rlw-cnn-cpu-steps=12-batch_size=4-layers=1-hidden=16-filter=16-state=4-eval_prompts=2-num_train=100"
        "-num_eval=4-seed0"
    ],
    "pargen": ["pargen/1_shot_rlw/test/0000000"],
}


@pytest.fixture(params=[name for name, case in CASES.items() if (OLDER / case.experiment.name).exists()])
def older(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Path]:
    """An experiment, and a copy of its older runs as --output_dir."""
    experiment = CASES[request.param].experiment
    shutil.copytree(OLDER / experiment.name, tmp_path / "runs")
    return experiment, tmp_path / "runs"


def test_older_runs_are_read(older: tuple[Any, Path]) -> None:
    experiment, output_dir = older
    figures = {}
    for file in (OLDER / experiment.name).rglob("*.json"):
        content = json.loads(file.read_text())
        if "origin" in content:
            figures[content["seconds"]] = content
    brought = migrate(experiment, output_dir)
    assert sorted(str(folder.relative_to(output_dir)) for folder in brought) == NAMES[experiment.name]
    for folder in brought:
        outcome = experiment.load(folder)
        assert folder == output_dir / outcome.settings.name
        before = figures[outcome.seconds]
        assert outcome.origin == before["origin"]
        shared = before.keys() & vars(outcome).keys()
        assert len(shared) > 5
        assert all(vars(outcome)[name] == before[name] for name in shared)
        assert json.loads((folder / "run.json").read_text()) == outcome.settings.to_dict()
    assert {path.name for path in output_dir.rglob("*.json")} == {"run.json", "outcome.json"}


def test_a_run_that_was_brought_is_not_trained_again(older: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, output_dir = older
    migrate(experiment, output_dir)
    assert migrate(experiment, output_dir) == []

    def train(*_: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(type(experiment), "train", train)
    case = next(case for case in CASES.values() if case.experiment is experiment)
    for name in NAMES[experiment.name]:
        outcome = experiment.load(output_dir / name)
        assert run_one(experiment, outcome.settings, case.job(outcome.settings, output_dir)) == outcome


def test_a_run_that_was_not_done_keeps_its_checkpoint(tmp_path: Path) -> None:
    experiment = CASES["strips"].experiment
    shutil.copytree(OLDER / "strips", tmp_path / "runs")
    before = tmp_path / "runs" / "simple-50-redraw"
    (before / "outcome.json").unlink()
    (before / "checkpoint-400").mkdir()
    (after,) = migrate(experiment, tmp_path / "runs")
    assert sorted(path.name for path in after.iterdir()) == ["checkpoint-400", "run.json"]
    assert not before.exists()


def test_two_folders_of_one_run_are_refused(tmp_path: Path) -> None:
    shutil.copytree(OLDER / "strips", tmp_path / "runs")
    (tmp_path / "runs" / NAMES["strips"][0]).mkdir()
    with pytest.raises(FileExistsError, match="hold the same run; remove one of them"):
        migrate(CASES["strips"].experiment, tmp_path / "runs")


def test_a_folder_that_makes_no_run_is_left_alone(tmp_path: Path) -> None:
    gone = {"domain": "gone", "num_train": 5, "head_factor": 1.0, "seeds": 3, "redraw_after": 5}
    for name, content in (("a", gone), ("b", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps(content))
    assert migrate(CASES["strips"].experiment, tmp_path) == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "run.json", "run.json"]


@pytest.mark.parametrize("at", range(3))
def test_a_kill_in_between_does_no_harm(older: tuple[Any, Path], at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever file of a run could not be written: the next command brings the rest."""
    experiment, output_dir = older
    write, written = migration.write_text_atomically, []

    def killed(file: Path, text: str) -> Path:
        if len(written) == at:
            raise KeyboardInterrupt
        written.append(file)
        return write(file, text)

    with monkeypatch.context() as patch:
        patch.setattr(migration, "write_text_atomically", killed)
        if at < 2 or experiment.name == "lm":  # two files a run; the language models have two runs
            with pytest.raises(KeyboardInterrupt):
                migrate(experiment, output_dir)
    migrate(experiment, output_dir)
    assert migrate(experiment, output_dir) == []
    for name in NAMES[experiment.name]:
        assert experiment.load(output_dir / name).settings.name == name
