"""The models of a run and their optimizer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

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
