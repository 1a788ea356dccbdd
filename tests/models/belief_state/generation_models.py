"""Small models for the tests of generation."""

from __future__ import annotations

from typing import Any

import torch
from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config

from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

VOCABULARY = 12
END = VOCABULARY - 1
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 48,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": None,
}
ENCODERS = ("gpt2", "llama", "qwen3")


def encoder(kind: str) -> PreTrainedConfig:
    """A tiny decoder of transformers."""
    return LlamaConfig(**_SIZES) if kind == "llama" else Qwen3Config(**_SIZES, head_dim=8)


def model(kind: str = "gpt2", seed: int = 0, **options: Any) -> BeliefStateForCausalLM:
    """With random weights large enough that the distributions are far from uniform."""
    torch.manual_seed(seed)
    special = {"bos_token_id": None, "eos_token_id": END, "pad_token_id": None}
    if kind == "gpt2":
        sizes = {"vocab_size": VOCABULARY, "n_positions": 48, "n_embd": 16, "n_layer": 2, "n_head": 2}
        config = BeliefStateConfig(head_width=24, **sizes, **special, **options)
    else:
        config = BeliefStateConfig(encoder_config=encoder(kind), head_width=24, **special, **options)
    made = BeliefStateForCausalLM(config).eval().double()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.startswith(("text_head.next", "text_head.prev")):
                parameter.mul_(12)
            elif "embed" in name or "wte" in name or "wpe" in name:
                parameter.mul_(20)
    return made


def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Random tokens other than the end token, [batch, length]."""
    return torch.randint(0, END, (batch, length), generator=torch.Generator().manual_seed(seed))
