"""The models of a run and their optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from hf_mech.control.play import play
from hf_mech.models.msat import MSATDecisionTransformer
from tests.training.msat.small import small_run
from training.msat.models import make_model, make_optimizer
from training.msat.settings import Run


@pytest.mark.parametrize(("model", "tokens"), [("baseline", 3), ("mat", 4), ("msat", 4)])
@pytest.mark.parametrize("positions", ["on", "off"])
def test_tokens_and_positions(model: str, tokens: int, positions: str) -> None:
    made = make_model(small_run(model, positions))
    assert made.config.tokens_per_step == tokens
    assert (made.tokenizer.embed_timestep is None) == (positions == "off")
    assert made.config.state_shape == [3, 36, 48]
    assert made.config.action_sizes == [3, 3]


def test_vectors_and_autoregressive_components() -> None:
    made = make_model(small_run(scenario="doorway", component_prediction="autoregressive"))
    assert made.config.state_shape == [2]
    assert made.config.component_prediction == "autoregressive"


def test_a_model_carries_its_environment_and_its_usual_return(tmp_path: Path) -> None:
    run = small_run()
    make_model(run).save_pretrained(tmp_path)
    model = MSATDecisionTransformer.from_pretrained(tmp_path).eval()
    assert model.config.environment == {"id": "hf_mech/Rooms-v0", "kwargs": {"frame_size": [36, 48]}}
    assert model.config.target_return == run.target_return == 0.98
    named = {"target_return": 0.98, "frame_size": (36, 48), "seed": 3, "max_episode_steps": 9}
    assert play(model, episodes=range(2), seed=3, max_episode_steps=9) == play(
        model, "hf_mech/Rooms-v0", range(2), **named
    )


def test_the_papers_scenarios() -> None:
    for scenario, sizes in (("my_way_home", [3, 3]), ("deadly_corridor", [3, 3, 3, 2])):
        with torch.device("meta"):
            made = make_model(Run.of("paper", scenario=scenario, model="msat", positions="on", seed=0))
        assert made.config.action_sizes == sizes
        assert made.config.state_shape == [3, 72, 128]
        assert (made.config.n_layer, made.config.n_head, made.config.n_embd) == (8, 8, 128)


def test_only_matrices_decay() -> None:
    model = make_model(small_run())
    decaying, others = make_optimizer(small_run(), model).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    assert len(decaying["params"]) + len(others["params"]) == len(list(model.parameters()))
    table = next(module.weight for module in model.modules() if isinstance(module, nn.Embedding))
    assert any(parameter is table for parameter in others["params"])
    assert all(parameter.dim() > 1 for parameter in decaying["params"])
