"""Small models of vectors, and steps for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

SIZES = [3, 2, 4]
FEATURES = 5
#: Every way to make and to predict actions.
KINDS: list[dict[str, Any]] = [
    {"action_tokenization": "single"},
    {"action_tokenization": "multi"},
    {"action_tokenization": "multi_state"},
    {"action_tokenization": "multi", "component_prediction": "autoregressive"},
    {"action_tokenization": "multi_state", "component_prediction": "autoregressive"},
]


def config(**changes: Any) -> MSATDecisionTransformerConfig:
    plain: dict[str, Any] = {
        "action_sizes": SIZES,
        "state_shape": [FEATURES],
        "context_length": 6,
        "max_timestep": 40,
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }
    return MSATDecisionTransformerConfig(**{**plain, **changes})


def model(**changes: Any) -> MSATDecisionTransformer:
    """Float64, for comparisons, with logits that differ clearly."""
    torch.manual_seed(3)
    made = MSATDecisionTransformer(config(**changes)).double().eval()
    for head in made.heads:
        torch.nn.init.normal_(head.weight)
    return made


def steps(batch: int, length: int, seed: int = 0) -> dict[str, Tensor]:
    """Forward's inputs without labels: episodes from their first step on."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "states": torch.randn(batch, length, FEATURES, generator=generator, dtype=torch.float64),
        "actions": torch.stack([torch.randint(size, (batch, length), generator=generator) for size in SIZES], -1),
        "returns_to_go": torch.rand(batch, length, generator=generator, dtype=torch.float64) * 2,
        "timesteps": torch.arange(length).expand(batch, -1),
    }
