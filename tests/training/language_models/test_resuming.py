"""What resuming means to a language model, besides what the engine does for all: the Trainer's own checkpoints."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors.torch import load_file

from training.engine import Job
from training.engine.runner import run_one
from training.language_models.experiment import EXPERIMENT
from training.language_models.settings import Run


def test_a_half_written_checkpoint_is_ignored(run: Run, job: Job, tmp_path: Path):
    straight, stopped = replace(job, folder=tmp_path / "straight"), replace(job, folder=tmp_path / "stopped")
    expected = run_one(EXPERIMENT, run, straight)
    assert run_one(EXPERIMENT, run, replace(stopped, stop_at=1)) is None
    assert len(list(stopped.folder.glob("checkpoint-*"))) == 1
    half = stopped.folder / "checkpoint-9999"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half a fi")
    torch.rand(100)  # the process that goes on has other random numbers
    resumed = run_one(EXPERIMENT, run, stopped)
    assert expected is not None
    assert resumed is not None
    assert {**asdict(resumed), "seconds": 0} == {**asdict(expected), "seconds": 0}
    ours, theirs = (load_file(own.folder / "model" / "model.safetensors") for own in (stopped, straight))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not list(stopped.folder.glob("checkpoint-*"))
    assert expected.epochs == 3
    assert expected.validation_perplexity[-1] < expected.perplexity_before


def test_patience_that_has_ended_stays_ended(run: Run, job: Job):
    still = replace(run, learning_rate=0.0, patience=1, epochs=5)  # never better than after the first epoch
    assert run_one(EXPERIMENT, still, replace(job, stop_at=5)) is None
    outcome = run_one(EXPERIMENT, still, job)
    assert outcome is not None
    assert outcome.epochs == 2
    assert outcome.best_epoch == 1
    assert outcome.validation_perplexity == [outcome.perplexity_before] * 2


def test_a_run_that_was_moved_finds_its_best_weights(run: Run, job: Job, tmp_path: Path):
    """The Trainer notes the best checkpoint by its path; elsewhere it would keep the last weights."""
    worse = replace(run, objective="clm", learning_rate=1.0, epochs=6, patience=9)  # diverges after the first epoch
    straight, moved = replace(job, folder=tmp_path / "straight"), replace(job, folder=tmp_path / "moved")
    expected = run_one(EXPERIMENT, worse, straight)
    assert expected is not None
    assert expected.best_epoch == 1
    before = replace(job, folder=tmp_path / "before")
    assert run_one(EXPERIMENT, worse, replace(before, stop_at=3)) is None
    before.folder.rename(moved.folder)
    resumed = run_one(EXPERIMENT, worse, moved)
    assert resumed is not None
    assert {**asdict(resumed), "seconds": 0} == {**asdict(expected), "seconds": 0}
