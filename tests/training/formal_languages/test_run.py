"""A run ends when it has learned, begins anew when it does not, and stops at a loss that is no number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.training.formal_languages.small import SMALL, run_of
from tests.training.jobs import job_in
from training.engine.run import RunError
from training.formal_languages.experiment import EXPERIMENT
from training.formal_languages.run import RunOutcome, train_run
from training.formal_languages.settings import Run


@pytest.fixture(autouse=True)
def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the training matters here: nothing is measured at the hundred lengths."""
    monkeypatch.setattr("training.formal_languages.run.accuracy_at", lambda *arguments: 0.5)


def trained(run: Run, folder: Path) -> RunOutcome:
    outcome = train_run(run, job_in(folder, EXPERIMENT))
    assert outcome is not None
    return outcome


def test_a_run_ends_when_it_has_learned(tmp_path: Path):
    """So many steps after the training loss has fallen below a number, or at its last step."""
    settings = SMALL | {"steps": 200, "steps_after": 30}
    run = run_of("reverse_string", learned_loss=100.0, **settings)
    assert trained(run, tmp_path / "whole").steps == 2 + 30  # a hundredth of the steps are two
    assert train_run(run, job_in(tmp_path / "cut", EXPERIMENT, checkpoint_steps=10, stop_at=15)) is None
    assert trained(run, tmp_path / "cut").steps == 32
    never = run_of("reverse_string", **settings | {"steps": 40})
    assert trained(never, tmp_path / "never").steps == 40


def test_a_run_begins_anew_as_often_as_it_must(tmp_path: Path):
    settings = SMALL | {"dropout": 0.2, "warmup_steps": 30, "steps": 30, "restart_after": 12}
    assert trained(run_of("stack_manipulation", "alm", seed=3, **settings), tmp_path).restarts == 2


def test_a_run_that_does_not_learn_begins_anew(tmp_path: Path):
    """With other weights, but not once it has learned, nor at its end."""
    settings = SMALL | {"steps": 20, "restart_after": 10, "learning_rate": 0.0, "dropout": 0.0}

    def weights(name: str, **others: Any) -> tuple[int, Tensor]:
        outcome = trained(run_of("reverse_string", **settings | others), tmp_path / name)
        return outcome.restarts, load_file(tmp_path / name / "model" / "model.safetensors")["lm_head.dense.weight"]

    once, first = weights("once", restart_after=0)
    twice, second = weights("twice")
    learned, kept = weights("learned", learned_loss=100.0, steps_after=19)
    assert (once, twice, learned) == (0, 1, 0)
    torch.testing.assert_close(kept, first)
    assert not torch.allclose(second, first)


@pytest.mark.parametrize(("restart_after", "known"), [(10, False), (0, True)])
def test_a_new_beginning_forgets_optimizer_and_schedule(tmp_path: Path, restart_after: int, known: bool):
    settings = SMALL | {"steps": 20, "restart_after": restart_after, "learning_rate": 0.1, "dropout": 0.0}
    run = run_of("reverse_string", **settings)
    assert train_run(run, job_in(tmp_path, EXPERIMENT, checkpoint_steps=10, stop_at=10)) is None
    checkpoint = tmp_path / "checkpoint-10"
    states = [torch.load(file, weights_only=True) for file in sorted(checkpoint.glob("custom_checkpoint_*.pkl"))]
    assert bool(states[0]["state"]) is known  # what Adam remembers
    assert states[1]["last_epoch"] == (10 if known else 0)


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path):
    run = run_of("stack_manipulation", "alm", seed=3, **SMALL | {"steps": 120, "dropout": 0.2, "restart_after": 50})
    run = replace(run, learning_rate=1e30, max_grad_norm=1e30, warmup_steps=0)
    with pytest.raises(RunError, match=r"is nan at step .*--learning_rate"):
        train_run(run, job_in(tmp_path, EXPERIMENT))
