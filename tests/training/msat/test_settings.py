"""The settings of M-SAT: the paper's tables, and what is refused."""

from __future__ import annotations

import pytest

from tests.training.commands import stages_of
from tests.training.jobs import refusal_of
from training.engine import SettingsError
from training.msat.experiment import EXPERIMENT
from training.msat.settings import MODELS, Run


def paper(scenario: str) -> Run:
    return Run.of("paper", scenario=scenario, model="msat", positions="on", seed=0)


@pytest.mark.parametrize(
    ("scenario", "residual", "attention", "context", "target"),
    [("my_way_home", 0.01, 0.1, 30, 1.8), ("deadly_corridor", 0.1, 0.3, 60, 29.0)],
)
def test_tables_4_and_5(scenario: str, residual: float, attention: float, context: int, target: float) -> None:
    run = paper(scenario)
    assert (run.layers, run.heads, run.epochs, run.batch_size, run.learning_rate) == (8, 8, 5, 128, 0.005)
    assert (run.embd_pdrop, run.resid_pdrop, run.attn_pdrop) == (0.1, residual, attention)
    assert (run.context, run.target_return) == (context, target)
    assert (run.height, run.width) == (72, 128)


@pytest.mark.parametrize(("scenario", "labels"), [("my_way_home", 10_240), ("deadly_corridor", 2_000)])
def test_the_papers_warmup_counts_labels(scenario: str, labels: int) -> None:
    run = paper(scenario)
    each = run.batch_size * run.context
    assert (run.warmup_steps - 1) * each < labels <= run.warmup_steps * each


def test_the_comparison_is_36_runs_of_one_setting() -> None:
    arguments = ["--preset", "compare", "--scenario", "my_way_home,deadly_corridor", "--model", "all"]
    [runs] = stages_of(EXPERIMENT, *arguments, "--positions", "all", "--num_seeds", "3")
    assert len({run.name for run in runs}) == len(runs) == 36
    for scenario in ("my_way_home", "deadly_corridor"):
        own = [run.to_dict() for run in runs if run.scenario == scenario]
        assert len({(run["model"], run["positions"], run["seed"]) for run in own}) == 18
        for run in own:
            assert {name for name in run if run[name] != own[0][name]} <= {"model", "positions", "seed"}


def test_the_command_trains_msat_in_my_way_home_by_default() -> None:
    [runs] = stages_of(EXPERIMENT)
    assert [run.name for run in runs] == ["my_way_home-msat-on-cpu-seed0"]


def test_what_is_refused() -> None:
    assert "must be a multiple of --heads, got 30 and 4" in refusal_of(EXPERIMENT, "--hidden", "30")
    assert "Give --steps or --epochs" in refusal_of(EXPERIMENT, "--steps", "0")
    arguments = ["--component_prediction", "autoregressive", "--model"]
    assert "--model mat or msat" in refusal_of(EXPERIMENT, *arguments, "baseline")
    assert [run.component_prediction for [run] in stages_of(EXPERIMENT, *arguments, "mat")] == ["autoregressive"]
    assert "--scenario must be of my_way_home" in refusal_of(EXPERIMENT, "--scenario", "basic")
    assert "needs --policy noisy: the policy 'expert' has none" in refusal_of(EXPERIMENT, "--noise", "0.3")
    assert "--hold 4 needs --policy noisy or random" in refusal_of(EXPERIMENT, "--hold", "4")
    assert "--target_return must be a finite number" in refusal_of(EXPERIMENT, "--target_return", "inf")
    with pytest.raises(SettingsError, match="--height must be 36 or more"):
        Run.of("cpu", {"height": 20}, scenario="rooms", model="msat", positions="on", seed=0)


def test_the_models_are_those_of_the_tables() -> None:
    assert MODELS == {"baseline": "single", "mat": "multi", "msat": "multi_state"}
