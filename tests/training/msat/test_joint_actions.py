"""Doorway: independent components are right half of the time, autoregressive ones nearly always (Section 4.1)."""

from __future__ import annotations

import pytest

from tests.training.msat.small import small_run, trained
from training.msat.run import means

SIZES = {"episodes": 150, "steps": 150, "context": 10, "learning_rate": 3e-3, "batch_size": 32, "eval_episodes": 20}


@pytest.mark.slow
@pytest.mark.parametrize(("prediction", "least", "most"), [("independent", 0.35, 0.62), ("autoregressive", 0.95, 1.0)])
def test_sampled_joint_actions(prediction: str, least: float, most: float, tmp_path) -> None:
    run = small_run(scenario="doorway", component_prediction=prediction, **SIZES)
    assert least <= means(trained(tmp_path, run).sampled)["return"] <= most
