"""Configurations: defaults, values that contradict each other, and what follows from them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, MultiDiscrete

from hf_mech.models.msat import MSATDecisionTransformer, MSATDecisionTransformerConfig, MSATError


def test_the_defaults_are_deadly_corridors():
    config = MSATDecisionTransformerConfig()
    assert (config.action_sizes, config.state_shape) == ([3, 3, 3, 2], [3, 72, 128])
    assert (config.n_layer, config.n_head, config.n_embd, config.context_length) == (8, 8, 128, 30)
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (128, 8, 8)
    assert config.scale_of_states == 1 / 255
    assert MSATDecisionTransformerConfig(state_shape=(4,)).scale_of_states == 1


@pytest.mark.parametrize(
    ("said", "values"),
    [
        (
            "needs a token for each component",
            {"action_tokenization": "single", "component_prediction": "autoregressive"},
        ),
        ("action_tokenization must be one of 'single', 'multi', 'multi_state'", {"action_tokenization": "mat"}),
        ("action_sizes must be 1 to 1000 numbers", {"action_sizes": []}),
        ("action_sizes must be 1 to 1000 numbers", {"action_sizes": [3, 0]}),
        ("action_sizes must be", {"action_sizes": 3}),
        ("state_shape must be", {"state_shape": [3, 72]}),
        ("state_shape must be", {"state_shape": [0]}),
        (r"channels come first: \[3, 72, 128\]", {"state_shape": [72, 128, 3]}),
        ("action_sizes must be", {"action_sizes": np.array([1.5, 2])}),
        ("attn_pdrop must be at most 1", {"attn_pdrop": np.float64(1.5)}),
        ("at least 36 x 36", {"state_shape": [3, 72, 35]}),
        ("more than 100,000,000 numbers", {"state_shape": [3, 10**5, 10**5]}),
        ("n_embd must be a multiple of n_head, got 128 and 7", {"n_head": 7}),
        ("activation_function must be one of", {"activation_function": "swish-like"}),
        ("context_length must be at least 1", {"context_length": 0}),
        ("return_scale must be", {"return_scale": 0.0}),
        ("environment must be .*make_environment takes them, got", {"environment": {"frame_size": [36, 64]}}),
        ("environment must be", {"environment": "hf_mech/Rooms-v0"}),
        ("target_return must be", {"target_return": "the best"}),
    ],
)
def test_bad_values_are_named(said: str, values: dict[str, Any]):
    with pytest.raises(MSATError, match=said):
        MSATDecisionTransformerConfig(**values)


def test_sizes_come_from_the_spaces_of_gymnasium():
    """They are arrays of numpy; a saved configuration holds Python's numbers."""
    space = MultiDiscrete([3, 2])
    for sizes in (space.nvec, list(space.nvec)):
        config = MSATDecisionTransformerConfig(
            action_sizes=sizes, state_shape=Box(-1, 1, (4,)).shape, context_length=np.int64(7)
        )
        assert config.action_sizes == [3, 2]
        assert MSATDecisionTransformerConfig.from_dict(json.loads(config.to_json_string())).context_length == 7


def test_the_published_base_has_its_cnn():
    """32 x 8/4, 64 x 4/2, 64 x 3/1, then Linear and Tanh."""
    config = MSATDecisionTransformerConfig(n_layer=1)
    layers = MSATDecisionTransformer(config).tokenizer.state_encoder.network
    kernels = [
        (part.out_channels, part.kernel_size[0], part.stride[0])
        for part in layers.convolutions
        if isinstance(part, torch.nn.Conv2d)
    ]
    assert kernels == [(32, 8, 4), (64, 4, 2), (64, 3, 1)]
    assert layers.project.in_features == 64 * 5 * 12


def test_a_grayscale_frame():
    config = MSATDecisionTransformerConfig(state_shape=[1, 36, 40], n_layer=1, action_sizes=[2])
    model = MSATDecisionTransformer(config)
    outputs = model(
        torch.zeros(1, 2, 1, 36, 40).byte(), torch.zeros(1, 2, 1).long(), torch.ones(1, 2), torch.arange(2)[None]
    )
    assert outputs.logits.shape == (1, 2, 1, 2)
