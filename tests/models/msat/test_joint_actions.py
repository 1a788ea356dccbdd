"""Components that belong together: independent ones cannot express it, autoregressive ones can."""

from __future__ import annotations

import math

import pytest
import torch

from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from .models import config


@pytest.mark.parametrize("prediction", ["independent", "autoregressive"])
def test_both_components_are_the_same_coin(prediction: str):
    """Actions are (0, 0) or (1, 1), half and half: sampled, independent components agree half of the time."""
    torch.manual_seed(0)
    made = config(action_sizes=[2, 2], component_prediction=prediction, context_length=2, n_layer=1)
    model, generator = MSATDecisionTransformer(made), torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    states, returns, timesteps = torch.zeros(64, 2, 5), torch.zeros(64, 2), torch.arange(2).expand(64, 2)
    for _ in range(60):
        actions = torch.randint(2, (64, 2, 1), generator=generator).expand(-1, -1, 2)
        loss = model(states, actions, returns, timesteps, labels=actions).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    least = math.log(2) * (1 if prediction == "autoregressive" else 2) / 2  # a component
    assert loss.item() == pytest.approx(least, abs=0.025)

    count = 1000
    context = model.eval().start_context(count)
    drawn = model.act(torch.zeros(count, 5), context, 0.0, do_sample=True, generator=generator)
    agreed = float((drawn[:, 0] == drawn[:, 1]).float().mean())
    assert agreed > 0.98 if prediction == "autoregressive" else 0.4 < agreed < 0.6
