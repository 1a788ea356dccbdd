"""Runs so small that they take a second or less."""

from __future__ import annotations

from typing import Any

from training.formal_languages.run import RunOutcome
from training.formal_languages.settings import Run

SMALL: dict[str, Any] = {"steps": 30, "batch_size": 2, "max_train_length": 8, "test_samples": 1, "num_hidden_layers": 1}


def run_of(task: str, layout: str = "mlm", *, model: str = "stack", seed: int = 0, **overrides: Any) -> Run:
    """A run of the preset `cpu` without positional encodings."""
    return Run.of("cpu", overrides, task=task, layout=layout, model=model, encoding="none", seed=seed)


def outcome_of(run: Run, **figures: Any) -> RunOutcome:
    """An outcome of the run, as if it had been trained."""
    usual: dict[str, Any] = {
        **{"origin": {}, "seconds": 1.0, "seconds_of_test": 0.1, "parameters": 7, "steps": run.steps, "restarts": 0},
        **{"losses": [1.0, 0.5], "accuracy_by_length": {str(length): 0.5 for length in range(1, 101)}},
    }
    return RunOutcome(settings=run, **usual | figures)
