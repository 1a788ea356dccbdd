"""Stacks between layers: the stack against lists, the first logits, causality."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from hf_mech.probing.stacks_between import StackBetween, add_stacks_between


def test_hard_operations_keep_a_stack() -> None:
    layer = StackBetween(6, heads=2, width=3, slots=4, initializer_range=0.1).double()
    operations = torch.randint(3, (2, 9, 2))  # push, pop, no-op
    pushed = torch.randn(2, 9, 2, 3).double()
    actions = torch.nn.functional.one_hot(operations, 3).double()
    found = layer._stacks(actions, pushed)
    for row in range(2):
        for head in range(2):
            stack = [torch.zeros(3).double()] * 4
            for step in range(9):
                match operations[row, step, head].item():
                    case 0:
                        stack = [pushed[row, step, head], *stack[:-1]]
                    case 1:
                        stack = [*stack[1:], torch.zeros(3).double()]
                assert torch.equal(found[row, step, head], torch.stack(stack))


@pytest.fixture
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=11, **sizes)).eval()


@torch.no_grad()
def test_the_first_logits_are_the_models_own(model: LlamaForCausalLM) -> None:
    ids = torch.randint(11, (2, 7))
    before = model(ids).logits
    assert torch.equal(add_stacks_between(model)(ids).logits, before)


def test_the_past_alone_is_seen_and_all_weights_learn(model: LlamaForCausalLM) -> None:
    add_stacks_between(model, slots=3)
    for layer in model.model.layers[:-1]:
        torch.nn.init.normal_(layer.stack_between.up.weight)
    ids = torch.randint(11, (2, 7))
    changed = ids.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 11
    with torch.no_grad():
        one, other = model(ids).logits, model(changed).logits
    torch.testing.assert_close(one[:, :4], other[:, :4])
    assert not torch.allclose(one[:, 5], other[:, 5])
    model(ids, labels=ids, use_cache=False).loss.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())
