"""What the STRIPS Transformer cannot read is refused with a typed error that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.tokenization_strips import strips_tokenizer

ACTIONS = ["open", "close", "enter"]  # 3 pads


@pytest.fixture
def model() -> StripsTransformer:
    return StripsTransformer(StripsTransformerConfig(actions=ACTIONS, num_propositions=2, ensemble=2)).eval()


# ------------------------------------------------------------------------------------------------------------ traces


@pytest.mark.parametrize(
    ("input_ids", "says"),
    [
        (torch.zeros(2, 0, dtype=torch.long), "at least one action"),
        (torch.zeros(0, 4, dtype=torch.long), "at least one action"),
        (torch.tensor([[0, 1], [3, 3]]), "at least one action"),
        (torch.tensor([[0, 1], [2, 4]]), "index 4 at row 1, position 1.* 0 to 2, and 3 for padding"),
        (torch.tensor([[0, -1]]), "index -1 at row 0, position 1.* 0 to 2"),
        (torch.tensor([[0.0, 1.0]]), r"integers of shape \[batch, length\], got torch.float32"),
        (torch.tensor([[True, False]]), "got torch.bool"),
        (torch.tensor([0, 1]), r"shape \[batch, length\], got .*\[2\]"),
        (torch.tensor([[[0, 1]]]), r"got .*\[1, 1, 2\]"),
    ],
)
def test_traces(model: StripsTransformer, input_ids: Tensor, says: str):
    for mode in (True, False):
        with pytest.raises(StripsError, match=says):
            model.train(mode)(input_ids)


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (torch.ones(1, 2), r"input_ids' shape, \[2, 2\], got \[1, 2\]"),
        (torch.ones(2), r"got \[2\]"),
        (torch.tensor([[1, 1], [0, 0]]), "at least one action"),
    ],
)
def test_attention_masks(model: StripsTransformer, mask: Tensor, says: str):
    with pytest.raises(StripsError, match=says):
        model(torch.tensor([[0, 1], [1, 2]]), attention_mask=mask)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([[0, 0]], r"shape of input_ids, \[2, 3\], got \[1, 2\]"),
        ([[0, 0, 0], [0, 2, -100]], "labels hold 2 at row 1, position 1.*expected 0 or 1"),
        ([[0, 0, -100], [0, 1, -100]], "labels hold -100 at row 0, position 2, which is an action"),
        ([[0, 0, 0], [0, 1, 0]], "labels hold 0 at row 1, position 2, which is padding: expected -100"),
        ([[0, 0, -1], [0, 1, -100]], "labels hold -1"),
    ],
)
def test_labels(model: StripsTransformer, labels: list[list[int]], says: str):
    with pytest.raises(StripsError, match=says):
        model(torch.tensor([[0, 1, 2], [0, 1, 3]]), labels=torch.tensor(labels))


def test_labels_at_masked_actions(model: StripsTransformer):
    ids, mask = torch.tensor([[0, 1]]), torch.tensor([[1, 0]])
    with pytest.raises(StripsError, match="position 1, which is padding"):
        model(ids, attention_mask=mask, labels=torch.tensor([[0, 0]]))
    assert model(ids, attention_mask=mask, labels=torch.tensor([[0, -100]])).loss.isfinite()


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        (["open", "zork"], "Unknown action 'zork' at position 1.*open, close, enter"),
        ([0, 3], "index 3 at position 1 is out of range.*0 to 2"),
        ([-1], "index -1"),
    ],
)
def test_unknown_actions(model: StripsTransformer, trace: list[Any], says: str):
    with pytest.raises(StripsError, match=says):
        model.next_actions(trace)


@pytest.mark.parametrize(
    "actions", [torch.tensor([0, 5]), torch.tensor([-1]), torch.tensor([0.5]), torch.tensor([[0, 1]])]
)
def test_steps(model: StripsTransformer, actions: Tensor):
    with pytest.raises(StripsError):
        model.step(actions)


def test_a_refused_trace_leaves_the_model_as_it_was(model: StripsTransformer):
    before = model.theta.detach().clone().sub_(0.5)
    model.theta.data.copy_(before)
    with pytest.raises(StripsError):
        model.train()(torch.tensor([[7]]))
    assert torch.equal(model.theta, before)


# ------------------------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"num_actions": 0}, "num_actions must be at least 1, got 0"),
        ({"num_propositions": -2}, "num_propositions must be at least 1, got -2"),
        ({"num_actions": 2, "actions": ["a"]}, "num_actions is 2, but 1 action names.*leave num_actions out"),
        ({"num_propositions": 1, "propositions": ["p", "q"]}, "leave num_propositions out"),
        ({"actions": []}, "at least one"),
        ({"actions": ["a", "a"]}, "unique"),
        ({"ensemble": 0}, "ensemble must be at least 1, got 0"),
        ({"focal_alpha": 1.0}, "focal_alpha must lie strictly between 0 and 1, got 1.0"),
        ({"focal_gamma": -1.0}, "focal_gamma must .* got -1.0"),
        ({"num_actions": 4, "pad_token_id": 0}, "pad_token_id must be num_actions = 4.*leave it out"),
    ],
)
def test_configurations(settings: dict[str, Any], says: str):
    with pytest.raises(StripsError, match=says):
        StripsTransformerConfig(**settings)


def test_members_and_seeds(model: StripsTransformer):
    for index in (2, -1):
        for ask in (model.member, model.to_domain):
            with pytest.raises(StripsError, match=f"No member {index} in an ensemble of 2"):
                ask(index)
    with pytest.raises(StripsError, match="No member 2"):
        model.next_actions(["open"], member=2)
    with pytest.raises(StripsError, match="needs as many seeds, got 3"):
        model.seed_members([0, 1, 2])


@pytest.mark.parametrize("name", ["two words", "", "[PAD]"])
def test_names_that_are_no_tokens(name: str):
    with pytest.raises(StripsError, match="rename"):
        strips_tokenizer(["a", name])


# ---------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(model: StripsTransformer, value: float):
    model.theta.data[0, 0, 0, 0] = value
    before = model.theta.detach().clone()
    for ask in (model.to_domain, model.binarize, lambda: model.next_actions(["open"])):
        with pytest.raises(StripsError, match=r"1 of 36 weights are not finite.*last good checkpoint"):
            ask()
    assert torch.equal(model.theta.nan_to_num(9), before.nan_to_num(9))


def test_embeddings_are_refused_in_words_of_its_own(model: StripsTransformer):
    for ask in (
        model.get_input_embeddings,
        lambda: model.set_input_embeddings(torch.nn.Embedding(3, 2)),
        lambda: model.resize_token_embeddings(5),
    ):
        with pytest.raises(NotImplementedError, match=r"StripsTransformer has no embeddings.*Read `model.theta`"):
            ask()
