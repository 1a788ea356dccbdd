"""Several processes that share runs: each run is trained once, and nothing is torn; the same on a full disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hf_mech.hub import Results, check_folder, verify_checksums
from hf_mech.hub.files import held
from tests.training.engine.test_toy import COMMAND
from tests.training.jobs import job_in
from tests.training.toy.experiment import EXPERIMENT, Count
from training.engine import main, runner
from training.engine.run import files_named
from training.engine.runner import RunInProgressError, run_all, run_one

ROOT = Path(__file__).parents[3]
NAME = "5-cpu-steps=30-seed{}"


def options(root: Path, *more: str) -> list[str]:
    return ["--steps", "30", "--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards"), *more]


@pytest.mark.slow
def test_two_commands_at_once_on_the_same_runs(tmp_path: Path) -> None:
    """One in a process of its own, the other here as soon as that one trains."""
    asked = options(tmp_path, "--num_seeds", "3", "--jobs", "1")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", COMMAND, *asked], cwd=ROOT, env=environment, **pipes) as command:
        try:
            while not list((tmp_path / "runs").glob("*/run.json")):
                assert command.poll() is None, command.communicate()
                time.sleep(0.01)
            main(EXPERIMENT, asked)
            said = command.communicate(timeout=300)
        finally:
            command.kill()
    assert command.returncode == 0, said
    for seed in range(3):
        assert sorted(path.name for path in (tmp_path / "runs" / NAME.format(seed)).iterdir()) == [
            "model",
            "outcome.json",
            "run.json",
            "run.yaml",
        ]
    assert not list(files_named(tmp_path, "*.lock", "*.tmp"))
    main(EXPERIMENT, asked)
    check_folder(tmp_path / "cards" / "toy")
    assert Results.load(tmp_path / "cards" / "toy" / "results.json").results[0].n == 3
    assert verify_checksums(tmp_path / "runs" / "toy") == ["model.safetensors"]


def test_a_run_in_progress_is_left_to_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second command does the others, says so, and makes the card of those."""
    with held(tmp_path / "runs" / NAME.format(0)) as alone:
        assert alone
        main(EXPERIMENT, options(tmp_path, "--num_seeds", "2", "--jobs", "1"))
        said = capsys.readouterr().err
        assert f"Another process still trains 1 of 2 runs: {NAME.format(0)}. The cards are made without" in said
        assert not (tmp_path / "runs" / NAME.format(0)).exists()
        assert Results.load(tmp_path / "cards" / "toy" / "results.json").results[0].n == 1
    main(EXPERIMENT, options(tmp_path, "--num_seeds", "2", "--jobs", "1"))
    assert "Another process" not in capsys.readouterr().err
    assert Results.load(tmp_path / "cards" / "toy" / "results.json").results[0].n == 2


@pytest.mark.slow
def test_workers_are_like_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin without a CUDA context, and leave a run in progress to others.

    The outcomes come in the order of the settings.
    """
    made: list[Any] = []

    class Pool(ProcessPoolExecutor):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self.submit(torch.cuda.is_initialized).result())

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)
    asked = [Count.of("cpu", {"steps": 5}, modulus=5, seed=seed) for seed in (2, 1, 0)]
    job = job_in(tmp_path / "x", EXPERIMENT)
    with held(tmp_path / asked[1].name):
        found = run_all(EXPERIMENT, asked, job.options, 2)
        with pytest.raises(RunInProgressError, match="is trained by another process right now"):
            run_one(EXPERIMENT, asked[1], job_in(tmp_path / asked[1].name, EXPERIMENT))
    assert [outcome and outcome.settings.seed for outcome in found] == [2, None, 0]
    assert made == [False]


def test_a_stage_that_another_one_needs_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process ends while this one waits; the run is then done here."""
    asked = [Count.of("cpu", {"steps": 5}, modulus=5, seed=0)]
    looks: list[float] = []
    with contextlib.ExitStack() as other:
        other.enter_context(held(tmp_path / asked[0].name))

        def sleep(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) == 3:
                other.close()

        monkeypatch.setattr("training.engine.runner.time", SimpleNamespace(sleep=sleep))
        (outcome,) = run_all(EXPERIMENT, asked, job_in(tmp_path / "x", EXPERIMENT).options, 1, wait=True)
    assert outcome is not None
    assert len(looks) == 3


def test_runs_are_found_while_folders_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name / "checkpoint-1").mkdir(parents=True)
        (tmp_path / name / "outcome.json").write_text("")
    found = []
    for file in files_named(tmp_path, "outcome.json"):
        found.append(file.parent.name)
        if file.parent.name == "a":
            (tmp_path / "b" / "outcome.json").unlink()
            (tmp_path / "b" / "checkpoint-1").rmdir()
            (tmp_path / "b").rmdir()
    assert found == ["a", "c"]


# ---------------------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize("place", ["runs", "cards"])
def test_a_place_that_is_no_folder_is_one_line(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / place).write_text("")
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, options(tmp_path))
    assert left.value.code == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "cannot be written" in line]
    assert str(tmp_path / place) in line
    assert "Traceback" not in line


@pytest.mark.linux
def test_a_full_disk_is_one_line_and_the_run_can_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The system itself refuses files of more than 9,000 bytes; the model is larger."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, before[1]))
    try:
        with pytest.raises(SystemExit) as left:
            main(EXPERIMENT, options(tmp_path, "--jobs", "1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert left.value.code == 1
    said = capsys.readouterr().err
    last = said.strip().splitlines()[-1]
    assert f"{tmp_path / 'runs' / NAME.format(0)} cannot be written: File too large. Free space there" in last
    assert "Traceback" not in said
    main(EXPERIMENT, options(tmp_path, "--jobs", "1"))
    assert verify_checksums(tmp_path / "runs" / "toy") == ["model.safetensors"]
