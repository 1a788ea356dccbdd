"""Habits that transformers' common tests check of every model and the contract suite does not."""

from __future__ import annotations

import inspect

import torch
from accelerate import Accelerator
from torch.testing import assert_close
from transformers import LlamaForCausalLM

from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM

from .models import KINDS, encoders, model, tokens


def test_every_argument_of_a_stock_forward_is_named():
    stock = set(inspect.signature(LlamaForCausalLM.forward).parameters) - {"kwargs"}
    assert stock <= set(inspect.signature(BeliefStateForCausalLM.forward).parameters)


def test_hidden_states_and_attentions_get_gradients():
    made, ids = model(attn_implementation="eager"), tokens(2, 6)
    outputs = made(ids, labels=ids, output_hidden_states=True, output_attentions=True)
    found = (*outputs.hidden_states, *outputs.attentions)
    for tensor in found:
        tensor.retain_grad()
    outputs.loss.backward()
    assert all(tensor.grad is not None and tensor.grad.any() for tensor in found)


def test_checkpointing_by_the_configuration_is_checkpointing():
    """Of both encoders. The key is used up, as in stock models."""
    ids = tokens(2, 6)
    for kind in KINDS:
        torch.manual_seed(0)
        config = BeliefStateConfig(encoder_config=encoders()[kind], head_width=24, gradient_checkpointing=True)
        made, plain = BeliefStateForCausalLM(config).double().train(), model(kind).train()
        assert not hasattr(made.config, "gradient_checkpointing")
        encoders_of_made = (made.model.forward_encoder, made.model.backward_encoder)
        calls: tuple[list[int], ...] = ([], [])
        for encoder, count in zip(encoders_of_made, calls, strict=True):
            layers = encoder.h if kind == "gpt2" else encoder.layers
            layers[0].mlp.register_forward_pre_hook(lambda *_, count=count: count.append(1))
        for one in (made, plain):
            one(ids, labels=ids).loss.backward()
        assert [*map(len, calls)] == [2, 3]  # once more in the backward pass; B reads the empty suffix besides
        for ours, theirs in zip(made.parameters(), plain.parameters(), strict=True):
            assert_close(ours.grad, theirs.grad)


def test_a_model_that_accelerate_unwraps_generates():
    """`unwrap_model(keep_fp32_wrapper=False)` leaves a forward without the decorators of its own."""
    accelerator, tokens = Accelerator(mixed_precision="bf16", cpu=True), torch.tensor([[1, 2, 3]])
    plain = model().float()
    wanted = plain.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=3, do_sample=False)
    unwrapped = accelerator.unwrap_model(accelerator.prepare(plain), keep_fp32_wrapper=False)
    found = unwrapped.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=3, do_sample=False)
    assert torch.equal(found, wanted)
