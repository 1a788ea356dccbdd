"""Actions that begin even: the same for every position, and trained from the first step on."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaForMaskedLM

from .contract import gpt2, inputs, roberta


@pytest.mark.parametrize(("ours", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)])
def test_even_actions_begin_alike_and_are_trained(ours: type, config: type):
    torch.manual_seed(0)
    model, batch = ours(config(stack_actions_start="even")), inputs(3, 9, 0)
    output = model(**batch, labels=batch["input_ids"], output_stack_attentions=True)
    for actions in output.stack_actions:
        assert_close(actions, torch.full_like(actions, 1 / 3))
    output.loss.backward()
    weights = [weight for name, weight in model.named_parameters() if ".action." in name]
    assert weights
    for weight in weights:
        assert weight.grad.abs().sum() > 0


def test_the_other_weights_are_those_of_a_random_start():
    states = []
    for start in ("random", "even"):
        torch.manual_seed(0)
        states.append(StackGPT2ForCausalLM(gpt2(stack_actions_start=start)).state_dict())
    assert {name for name, weight in states[0].items() if not torch.equal(weight, states[1][name])} == {
        name for name in states[0] if name.endswith("action.weight")
    }


def test_another_start_is_refused():
    with pytest.raises(StackError, match="stack_actions_start"):
        gpt2(stack_actions_start="uneven")
