"""First weights that copy: a state begins as a sum of the tokens that it has read, and an output as its tokens."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM
from training.engine.weights import begin_copying

SIZES = {"vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24, "eos_token_id": 0}


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def lead(logits: torch.Tensor, read: torch.Tensor) -> float:
    """By how many standard deviations the logits [rows, vocabulary] of the tokens read [rows, length] are above all."""
    return float(((logits.gather(1, read) - logits.mean(1, keepdim=True)) / logits.std(1, keepdim=True)).mean())


@pytest.mark.parametrize("copying", [True, False])
def test_the_text_head_likes_what_either_state_has_read(copying: bool) -> None:
    model = BeliefStateForCausalLM(BeliefStateConfig(**SIZES, head_width=70)).eval()
    if copying:
        begin_copying(model)
    prefix, suffix = torch.stack([torch.randperm(59)[:12] + 1 for _ in range(200)]).split(6, 1)
    with torch.no_grad():
        found = model(prefix, suffix_ids=suffix)
    for logits in (found.logits[:, -1], found.prev_logits[:, -1]):
        leads = lead(logits, prefix[:, :-1]), lead(logits, suffix[:, 1:])  # besides the two tokens of the states
        assert all(0.3 < one < 1.5 if copying else abs(one) < 0.15 for one in leads)


def test_gpt2s_output_layer_too() -> None:
    model = GPT2LMHeadModel(GPT2Config(**SIZES, tie_word_embeddings=False)).eval()
    begin_copying(model)
    rows = torch.stack([torch.randperm(59)[:8] + 1 for _ in range(200)])
    with torch.no_grad():
        assert 0.3 < lead(model(rows).logits[:, -1], rows[:, :-1]) < 1.5
