"""A run in Rooms that takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.training.jobs import job_in
from training.engine.runner import run_one
from training.msat.experiment import EXPERIMENT
from training.msat.run import RunOutcome
from training.msat.settings import Run

SIZES = {
    **{"episodes": 6, "height": 36, "width": 48, "layers": 1, "heads": 2, "hidden": 32, "context": 6, "steps": 40},
    **{"batch_size": 8, "warmup_steps": 2, "eval_steps": 20, "eval_episodes": 3, "curve_episodes": 2},
    "mixed_precision": "no",
}


def small_run(model: str = "msat", positions: str = "on", seed: int = 3, scenario: str = "rooms", **more: Any) -> Run:
    return Run.of("cpu", {**SIZES, **more}, scenario=scenario, model=model, positions=positions, seed=seed)


def trained(folder: Path, run: Run) -> RunOutcome:
    outcome = run_one(EXPERIMENT, run, job_in(folder / run.name, EXPERIMENT))
    assert outcome is not None
    return outcome
