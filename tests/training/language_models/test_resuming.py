"""What resuming means to a language model, besides what the engine does for all: the Trainer's own checkpoints."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from training.engine import Job
from training.engine.runner import run_one
from training.language_models.experiment import EXPERIMENT
from training.language_models.settings import Run


@pytest.mark.slow
def test_a_run_that_was_killed_and_moved_ends_as_if_it_had_not_been(run: Run, job: Job, tmp_path: Path):
    """A half-written checkpoint is ignored. The best one is found, though the Trainer notes it by its path."""
    diverging = {"learning_rate": 0.5, "warmup": 0.5, "epochs": 3, "patience": 9}  # after the first epoch
    worse = replace(run, objective="clm", **diverging)
    straight, stopped, moved = (replace(job, folder=tmp_path / name) for name in ("straight", "stopped", "moved"))
    expected = run_one(EXPERIMENT, worse, straight)
    assert expected is not None
    assert (expected.epochs, expected.best_epoch) == (3, 1)
    assert run_one(EXPERIMENT, worse, replace(stopped, stop_at=2)) is None
    stopped.folder.rename(moved.folder)
    half = moved.folder / "checkpoint-9999"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half a fi")
    torch.rand(100)  # the process that goes on has other random numbers
    resumed = run_one(EXPERIMENT, worse, moved)
    assert resumed is not None
    assert {**asdict(resumed), "seconds": 0} == {**asdict(expected), "seconds": 0}
    ours, theirs = (load_file(own.folder / "model" / "model.safetensors") for own in (moved, straight))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not list(moved.folder.glob("checkpoint-*"))


@pytest.mark.slow
def test_patience_that_has_ended_stays_ended(run: Run, job: Job):
    still = replace(run, learning_rate=0.0, patience=1, epochs=5)  # never better than after the first epoch
    assert run_one(EXPERIMENT, still, replace(job, stop_at=5)) is None
    outcome = run_one(EXPERIMENT, still, job)
    assert outcome is not None
    assert outcome.epochs == 2
    assert outcome.best_epoch == 1
    assert outcome.validation_perplexity == [outcome.perplexity_before] * 2
