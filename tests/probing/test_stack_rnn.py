"""The recurrent baselines of Table 1, against their equations."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hf_mech.languages import test_batch
from hf_mech.probing.baselines import CELL, HIDDEN, FormalRNN


def test_the_stack_rnn_keeps_a_stack():
    model: Any = FormalRNN(6, use_stack=True).double()
    ids = torch.randint(6, (3, 7))
    weight, bias = model.rnn.weight_ih_l0, model.rnn.bias_ih_l0 + model.rnn.bias_hh_l0
    for row in range(3):
        state, stack = torch.zeros(HIDDEN).double(), [torch.zeros(CELL).double()] * 9
        for step in range(7):
            token = torch.eye(6).double()[ids[row, step]]
            state = torch.tanh(weight @ torch.cat([token, stack[0]]) + model.rnn.weight_hh_l0 @ state + bias)
            push, pop, no_op = model.actions(state).softmax(0)
            below = [*stack[1:], torch.zeros(CELL).double()]
            above = [model.cell(state), *stack[:-1]]
            stack = [push * a + pop * b + no_op * s for a, b, s in zip(above, below, stack, strict=True)]
            torch.testing.assert_close(model(ids).logits[row, step], model.output(state))


@pytest.mark.parametrize("use_stack", [False, True])
def test_an_rnn_learns_from_every_parameter(use_stack: bool):
    batch = test_batch("reverse_string", "mlm", seed=0, length=4, count=2)
    model = FormalRNN(6, use_stack)
    model(batch["input_ids"], labels=batch["labels"]).loss.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_the_top_of_the_stack_reaches_the_next_state():
    """Its weights are LeCun normal, larger than torch's."""
    torch.manual_seed(0)
    model: Any = FormalRNN(6, use_stack=True)
    for weight in model.parameters():
        if weight.dim() == 1:
            assert not weight.any()
        else:
            assert weight.std().item() * weight.shape[1] ** 0.5 == pytest.approx(1, rel=0.1)
