"""What the STRIPS Transformer cannot read is refused with a typed error that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, GPT2Config, GPT2Model

from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.tokenization_strips import strips_tokenizer

ACTIONS = ["open", "close", "enter"]  # 3 pads
LOADERS = pytest.mark.parametrize("load", [StripsTransformer.from_pretrained, AutoModel.from_pretrained])


@pytest.fixture
def model() -> StripsTransformer:
    return StripsTransformer(StripsTransformerConfig(actions=ACTIONS, num_propositions=2, ensemble=2)).eval()


def test_all_errors_are_of_one_family():
    assert issubclass(StripsError, ValueError)
    for error in (StripsError, StripsError, StripsError):
        assert issubclass(error, StripsError)


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


# ------------------------------------------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(model: StripsTransformer, value: float):
    model.theta.data[0, 0, 0, 0] = value
    before = model.theta.detach().clone()
    for ask in (model.to_domain, model.binarize, lambda: model.next_actions(["open"])):
        with pytest.raises(StripsError, match=r"1 of 36 weights are not finite.*last good checkpoint"):
            ask()
    assert torch.equal(model.theta.nan_to_num(9), before.nan_to_num(9))


@LOADERS
def test_a_checkpoint_that_is_not_finite(load: Any, model: StripsTransformer, tmp_path: Path):
    model.theta.data[0, 0, 0, 0] = float("nan")
    model.save_pretrained(tmp_path)
    with pytest.raises(StripsError, match="not finite") as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("size", [0, 4, 100, -4])
@LOADERS
def test_a_truncated_checkpoint(load: Any, model: StripsTransformer, tmp_path: Path, size: int):
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(StripsError, match=r"damaged safetensors file.*force_download=True") as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)


@LOADERS
def test_a_checkpoint_without_its_weights(load: Any, model: StripsTransformer, tmp_path: Path):
    model.save_pretrained(tmp_path)
    save_file({"something_else": torch.zeros(1)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StripsError, match=r"lacks the weights \['theta'\]"):
        load(tmp_path)


@LOADERS
def test_a_checkpoint_whose_sizes_are_not_its_configurations(load: Any, model: StripsTransformer, tmp_path: Path):
    model.save_pretrained(tmp_path)
    theta = load_file(tmp_path / "model.safetensors")["theta"]
    save_file({"theta": theta[:, :1].contiguous()}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StripsError, match=str(tmp_path)):
        load(tmp_path)


@LOADERS
def test_a_configuration_that_contradicts_itself(load: Any, model: StripsTransformer, tmp_path: Path):
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_actions": 9}))
    with pytest.raises(StripsError, match="num_actions is 9, but 3 action names"):
        load(tmp_path)


def test_a_checkpoint_of_another_type(tmp_path: Path):
    GPT2Model(GPT2Config(vocab_size=5, n_positions=4, n_embd=4, n_layer=1, n_head=1)).save_pretrained(tmp_path)
    with pytest.raises(StripsError, match=r"model type 'gpt2', expected 'strips_transformer'.*AutoModel"):
        StripsTransformer.from_pretrained(tmp_path)
    assert type(AutoModel.from_pretrained(tmp_path)) is GPT2Model
