"""The figures of several runs: intervals, differences of the same seed, the choice of the checkpoint."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from training.engine import main
from training.msat import report
from training.msat.experiment import EXPERIMENT
from training.msat.figures import figures_of, in_words, interval
from training.msat.run import RunOutcome
from training.msat.settings import PEER, Run


def outcome(
    model: str, positions: str, seed: int, wins: int, curve: float = 0.0, scenario: str = "rooms", **more: Any
) -> RunOutcome:
    """Of four episodes, `wins` solved."""
    scores = [{"seed": i, "total_return": float(i < wins), "success": i < wins, "length": 7} for i in range(4)]
    return RunOutcome(
        settings=Run.of("cpu", more, scenario=scenario, model=model, positions=positions, seed=seed),
        origin={},
        seconds=10.0,
        parameters=100,
        steps=40,
        data_steps=500,
        data_returns=[0.5, 1.0],
        data_success=1.0,
        seconds_of_data=1.0,
        seconds_of_test=1.0,
        losses=[1.0, 0.5],
        curve=[{"step": step, "return": value, "success": 0.0, "length": 7} for step, value in ((20, 0), (40, curve))],
        argmax=scores,
        sampled=scores,
    )


OUTCOMES = [
    *(outcome("msat", "on", seed, wins) for seed, wins in enumerate([4, 3, 4])),
    *(outcome("baseline", "on", seed, wins) for seed, wins in enumerate([2, 1, 4])),
    outcome("mat", "off", 0, 1),
    outcome("msat", "on", 0, 4, policy="noisy", noise=0.5),
]


def test_the_interval_of_a_mean() -> None:
    low, high = interval([0.5, 0.7, 0.9]) or (0, 0)
    assert (low + high) / 2 == pytest.approx(0.7)
    assert (high - low) / 2 == pytest.approx(4.303 * statistics.stdev([0.5, 0.7, 0.9]) / 3**0.5, rel=1e-3)
    assert interval([0.5]) is None
    assert in_words([0.5]) == "0.5"


def test_differences_are_of_runs_of_one_seed() -> None:
    found = {
        (entry.setting["model"], entry.metric): entry
        for entry in report.measurements(OUTCOMES)
        if not entry.setting["departures"]
    }
    assert found["msat", "success_argmax"].values == [1.0, 0.75, 1.0]
    assert found["msat", "success_argmax_beyond_baseline"].values == [0.5, 0.5, 0.0]
    assert found["mat", "return_sampled_beyond_baseline"].values == [-0.25]
    assert ("baseline", "return_argmax_beyond_baseline") not in found


def test_the_tables() -> None:
    shown = report.table(OUTCOMES)
    assert [row[1:3] for row in shown.rows] == [["baseline", "on"], ["mat", "off"], ["msat", "on"], ["msat", "on"]]
    assert "noise 0.5" in shown.rows[-1][3]
    assert shown.rows[2][4:7] == ["0.92 ± 0.12", "91.7 ± 11.8", "7.0 ± 0.0"]
    intervals = report.intervals_table(report.measurements(OUTCOMES))
    assert [row[1] for row in intervals.rows] == ["baseline", "msat"]  # of several seeds and without departures
    assert intervals.rows[1][4:6] == ["0.33 [-0.38, 1.05]", "92 [56, 100]"]


def test_more_episodes_make_no_other_model() -> None:
    measured = report.measurements([outcome("msat", "on", seed, 3, eval_episodes=4) for seed in range(2)])
    assert [row[1] for row in report.intervals_table(measured).rows] == ["msat"]


def test_components_are_compared_seed_by_seed() -> None:
    sees = [outcome("msat", "on", seed, 4, component_prediction="autoregressive") for seed in range(3)]
    shown = report.components_table(report.measurements(OUTCOMES), report.measurements(sees))
    assert [row[3] for row in shown.rows] == ["by argmax", "sampled"]
    assert shown.rows[0][4:] == ["92 [56, 100]", "100 [100, 100]", "8 [-28, 44]", "3"]
    assert not report.components_table(report.measurements(OUTCOMES[:2]), report.measurements(sees)).rows


def test_no_cards_no_tables(tmp_path: Path) -> None:
    assert set(report.results(tmp_path).values()) == {""}
    assert report.summary(tmp_path) == []


def test_the_checkpoint_is_not_chosen_by_the_test_episodes() -> None:
    runs = {
        Path("a"): outcome("msat", "on", 0, 4, curve=0.2),
        Path("b"): outcome("msat", "on", 1, 1, curve=0.6),
        Path("c"): outcome("baseline", "on", 2, 4, curve=0.9),
    }
    assert report.choose(runs) == Path("b")


def test_the_pictures_of_several_models() -> None:
    assert set(figures_of(OUTCOMES)) == {"returns_over_training.png", "training_loss.png", "returns.png"}
    assert set(figures_of(OUTCOMES[:1])) == {"returns_over_training.png", "training_loss.png"}


def test_the_card_is_never_the_peers() -> None:
    runs = {
        Path(name): outcome(name, "on", 0, 4, curve, scenario="doorway")
        for name, curve in ((PEER, 1.0), ("baseline", 0.5))
    }
    assert report.choose(runs) == Path("baseline")


def test_a_peer_beside_a_finished_baseline_may_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--model", PEER, "--scenario", "doorway", "--output_dir", str(tmp_path), "--dry_run"]
    with pytest.raises(SystemExit):
        main(EXPERIMENT, command)
    (tmp_path / "run").mkdir()
    content = asdict(outcome("baseline", "on", 0, 4, scenario="doorway"))
    (tmp_path / "run" / "outcome.json").write_text(json.dumps(content))
    main(EXPERIMENT, command)
    assert f"doorway-{PEER}" in capsys.readouterr().out
