"""Standard arguments of forward are answered or refused by name; none is ignored in silence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .case import ContractCase
from .registry import contract_cases, registered_models


def outputs(case: ContractCase, **arguments: Any) -> Any:
    with torch.no_grad():
        return case.eager_model()(**case.questions(2, 5, 0), **arguments)


@pytest.mark.feature("`output_hidden_states`")
@pytest.mark.needs("hidden_states")
def test_hidden_states_are_those_of_every_layer(case: ContractCase):
    found = outputs(case, output_hidden_states=True).hidden_states
    assert len(found) == case.config().num_hidden_layers + 1
    assert all(isinstance(states, Tensor) and states.isfinite().all() for states in found)


@pytest.mark.feature("`output_attentions` (not with `sdpa`)")
@pytest.mark.needs("attentions")
def test_attentions_are_those_of_every_layer(case: ContractCase):
    found = outputs(case, output_attentions=True).attentions
    assert len(found) == getattr(case.config(), "num_hidden_layers", 1)
    tokens = 5 * case.tokens_per_position
    assert all(weights.shape[-1] == weights.shape[-2] == tokens for weights in found)


@pytest.mark.feature("`return_dict=False`")
def test_a_tuple_holds_the_same(case: ContractCase):
    named, plain = outputs(case), outputs(case, return_dict=False)
    assert isinstance(plain, tuple)
    first = next(value for value in named.values() if isinstance(value, Tensor))
    assert torch.equal(plain[0], first)


def test_an_unknown_argument_is_refused(case: ContractCase):
    """Models that extend one of transformers' take what that one takes; all others refuse by name."""
    if case.stock is None:
        with pytest.raises(TypeError, match="no_such_argument"):
            outputs(case, no_such_argument=1)
    else:
        assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in case.arguments.values())


CAUSAL = [case for case in contract_cases() if "AutoModelForCausalLM" in registered_models()[case.model_class]]


@pytest.mark.parametrize("causal", CAUSAL, ids=lambda case: case.name)
def test_labels_may_come_one_place_earlier(causal: ContractCase):
    """transformers gives causal models `shift_labels` under sequence parallelism, which replace the labels."""
    batch = causal.inputs(2, 5, 0)
    labels = batch.pop("labels")
    earlier = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:].contiguous()
    other = torch.full_like(labels, -100)
    other[:, 0] = labels[:, 0]  # no token before it predicts it
    model = causal.model().eval()
    with torch.no_grad():
        usual = model(**batch, labels=labels).loss
        assert torch.equal(model(**batch, labels=other, shift_labels=earlier).loss, usual)
