"""The model's loss is the objective's, and generation with a cache is generation without it."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.belief_state.belief_state_objective import belief_state_loss_reference
from hf_mech.models.belief_state.belief_state_rows import sequences_of
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

END = 19


def model() -> BeliefStateForCausalLM:
    torch.manual_seed(0)
    sizes = {"n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2, "head_width": 24}
    special = {"eos_token_id": END, "bos_token_id": None, "pad_token_id": None}
    return BeliefStateForCausalLM(BeliefStateConfig(vocab_size=20, **sizes, **special)).eval().double()


def test_the_loss_is_the_reference_on_the_encoders_states():
    made, tokens = model(), torch.randint(0, END, (3, 8))
    sequences, _ = sequences_of(tokens, None, tokens, END)
    states = torch.nn.functional.pad(made.model(tokens).last_hidden_state, (0, 0, 0, 1))
    total, count = belief_state_loss_reference(states, made.model.suffix_states(sequences), made.text_head, sequences)
    assert_close(made(tokens, labels=tokens).loss, total / count)


def test_a_suffix_is_read_from_its_end():
    """Its state at a token depends on the tokens from there on, and on nothing before."""
    made, tokens = model(), torch.randint(0, END, (2, 6))
    whole = made.model(tokens, suffix_ids=tokens).suffix_hidden_state
    part = made.model(tokens, suffix_ids=tokens[:, 3:]).suffix_hidden_state
    assert_close(whole[:, 3:], part)
    assert_close(whole[:, -1:], made.model.empty_suffix(tokens.device).expand(2, -1, -1))


@pytest.mark.parametrize("suffix", [False, True])
def test_cached_generation_is_uncached(suffix: bool):
    made, tokens = model(), torch.randint(0, END, (3, 5))
    how = {"attention_mask": torch.ones_like(tokens), "max_new_tokens": 6, "do_sample": False, "pad_token_id": END}
    if suffix:
        how["suffix_ids"] = torch.randint(0, END, (3, 4))
    cached, uncached = (made.generate(tokens, use_cache=use_cache, **how) for use_cache in (True, False))
    assert torch.equal(cached, uncached)
