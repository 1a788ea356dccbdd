"""Runs so small that they take a second or less."""

from __future__ import annotations

from typing import Any

from training.belief_state.run import RunOutcome
from training.belief_state.settings import Run

SMALL: dict[str, Any] = {
    **{"steps": 12, "batch_size": 4, "layers": 1, "backward_layers": 1, "baseline_layers": 1, "hidden": 64, "heads": 2},
    **{"head_width": 16, "warmup_steps": 2, "eval_steps": 4, "eval_graphs": 20, "curve_graphs": 10, "generated": 4},
}


def run_of(model: str = "bst", graph: str = "g-2-5", *, preset: str = "cpu", seed: int = 0, **overrides: Any) -> Run:
    """A run of the preset's size."""
    return Run.of(preset, overrides, graph=graph, model=model, seed=seed)


def small(model: str = "bst", graph: str = "g-2-5", **overrides: Any) -> Run:
    return run_of(model, graph, **SMALL | overrides)


def outcome_of(run: Run, right: int, **more: Any) -> RunOutcome:
    """An outcome with made-up figures."""
    given: dict[str, Any] = {
        **{"settings": run, "origin": {}, "seconds": 10.0, "parameters": 1000, "steps": run.steps},
        **{"seconds_of_test": 1.0, "losses": [2.0, 1.0], "curve": [[run.steps, right / run.eval_graphs]]},
        **{"right": right, "generated_alike": run.generated},
    }
    return RunOutcome(**given | more)
