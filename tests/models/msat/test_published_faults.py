"""Faults of published code, which must not be here: integer returns, timesteps that differ, dropout while acting."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.msat import MSATError

from .models import FEATURES, model, steps


def first_logits(returns: object) -> torch.Tensor:
    acting = model()
    context = acting.start_context(1)
    acting.act(torch.zeros(1, FEATURES), context, returns)
    assert context.logits is not None
    return context.logits


def test_a_return_to_go_of_1_8_is_not_1_in_play():
    real = first_logits([1.8])
    assert not torch.allclose(real, first_logits([1.0]))
    assert torch.equal(real, first_logits(1.8))
    assert torch.equal(real, first_logits(torch.tensor([1.8])))
    assert torch.equal(first_logits([1]), first_logits([1.0]))


def test_a_return_to_go_of_1_8_is_not_1_in_training():
    trained, batch = model(), steps(1, 1)
    returns = {value: torch.tensor([[value]]) for value in (1.0, 1.8)}
    with torch.no_grad():
        found = {value: trained(**{**batch, "returns_to_go": given}).logits for value, given in returns.items()}
    assert not torch.allclose(found[1.0], found[1.8])


def test_a_return_to_go_is_no_integer_under_autocast():
    """Bfloat16 has 8 bits: 257.4 would be 258."""
    tokenizer, returns = model(return_scale=0.01).float().tokenizer, torch.tensor([257.4, 1.8])
    exact = tokenizer.of_return(returns)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(tokenizer.of_return(returns), exact)


def test_training_and_play_see_the_same_return():
    """The scale is the model's, so both give the environment's units."""
    acting, batch = model(return_scale=0.01), steps(1, 1)
    batch["returns_to_go"] = torch.tensor([[22.8]])
    context = acting.start_context(1)
    acting.act(batch["states"][:, 0], context, 22.8)
    with torch.no_grad():
        assert_close(context.logits, acting(**batch).logits[:, 0])


def test_timesteps_are_the_episodes_in_training_and_in_play():
    """Past the context length, play counts on; so does a training window that begins in the middle."""
    acting, length = model(), 14
    batch, context = steps(1, length), acting.start_context(1)
    for step in range(length):
        assert context.timesteps.tolist() == [step]
        now = {name: batch[name][:, step] for name in ("states", "returns_to_go", "actions")}
        acting.act(**now, context=context)
    last = {name: tensor[:, -6:] for name, tensor in batch.items()}  # timesteps 8 to 13
    with torch.no_grad():
        window = acting(**last).logits[:, -1]
        counted_from_the_window = acting(**{**last, "timesteps": torch.arange(6)[None]}).logits[:, -1]
        all_the_windows_first = acting(**{**last, "timesteps": torch.full((1, 6), 8)}).logits[:, -1]
    assert_close(context.logits, window)
    assert not torch.allclose(window, counted_from_the_window)
    assert not torch.allclose(window, all_the_windows_first)


def test_a_new_episode_counts_from_0():
    acting = model()
    context = acting.start_context(2)
    for _ in range(3):
        acting.act(torch.zeros(2, FEATURES), context, 1.0)
    acting.act(torch.zeros(2, FEATURES), context, 1.0, begins=[True, False])
    assert context.timesteps.tolist() == [1, 4]
    assert context.steps.tolist() == [1, 4]


def test_dropout_never_changes_a_decision():
    acting = model(embd_pdrop=0.5, resid_pdrop=0.5, attn_pdrop=0.5)
    contexts = [acting.start_context(1) for _ in range(2)]
    for context in contexts:
        acting.act(torch.zeros(1, FEATURES), context, 1.0)
    assert torch.equal(contexts[0].logits, contexts[1].logits)
    with pytest.raises(MSATError, match="training mode"):
        acting.train().act(torch.zeros(1, FEATURES), contexts[0], 1.0)
