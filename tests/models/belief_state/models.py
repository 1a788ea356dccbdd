"""Tiny belief state models over encoders of several kinds."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GPT2Config, LlamaConfig, Qwen3Config
from transformers.configuration_utils import PreTrainedConfig

from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM

VOCABULARY, END, PAD = 20, 19, 18


def encoders() -> dict[str, PreTrainedConfig]:
    """Configurations with learned positions, with rotary ones, and with a sliding window in every second layer."""
    special = {"bos_token_id": 0, "eos_token_id": END, "pad_token_id": PAD, "vocab_size": VOCABULARY}
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    rotary = {**sizes, **special, "num_key_value_heads": 1, "max_position_embeddings": 64, "initializer_range": 0.2}
    window = {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "initializer_range": 0.2}
    return {
        "gpt2": GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **special, **dropout),
        "llama": LlamaConfig(**rotary),
        "qwen3": Qwen3Config(**rotary, head_dim=8, **window),
    }


KINDS = tuple(encoders())


def model(kind: str = "gpt2", **options: Any) -> BeliefStateForCausalLM:
    """In float64, ready for inference; weights from seed 0."""
    torch.manual_seed(0)
    config = BeliefStateConfig(encoder_config=encoders()[kind], head_width=24, **options)
    return BeliefStateForCausalLM(config).eval().double()


def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Random tokens without the end token, [batch, length]."""
    return torch.randint(0, PAD, (batch, length), generator=torch.Generator().manual_seed(seed))
