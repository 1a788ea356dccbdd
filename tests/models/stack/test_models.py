"""StackGPT2 and StackRoberta: the layers by the equations, given operations, outputs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.utils import send_to_device
from torch import Tensor
from torch.testing import assert_close

from hf_mech.models.stack import (
    StackGPT2ForCausalLM,
    StackGPT2Model,
    StackRobertaForMaskedLM,
    StackRobertaModel,
    most_probable_operations,
    stack_attention_reference,
    stack_layer,
)
from hf_mech.models.stack.stack_layer import StackContext

from .contract import BOS, gpt2, inputs, roberta
from .stock import stock_model

families = pytest.mark.parametrize(
    ("model_class", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)]
)


def new(model_class: Any, config: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return model_class(config(**options)).eval()


@pytest.mark.parametrize("ours", [StackGPT2ForCausalLM, StackRobertaForMaskedLM])
def test_a_stock_checkpoint_loads_as_transformers_loads_it(ours: Any, tmp_path: Path):
    """With its type, from a folder below, with options of both kinds, and with a stock configuration."""
    theirs = stock_model(ours).bfloat16()
    theirs.save_pretrained(tmp_path / "below")
    for how in ({"dtype": torch.bfloat16}, {"dtype": "auto"}):
        model = ours.from_pretrained(tmp_path, subfolder="below", multi_pop=2, output_hidden_states=True, **how)
        assert model.dtype == torch.bfloat16
        assert (model.config.multi_pop, model.config.output_hidden_states) == (2, True)
    assert ours.from_pretrained(tmp_path / "below", config=theirs.config).config.use_stack
    assert ours.from_pretrained(tmp_path / "below", attn_implementation="eager").config._attn_implementation == "eager"


def test_trainer_keeps_the_operations_column():
    for model_class in (StackGPT2ForCausalLM, StackRobertaForMaskedLM, StackGPT2Model):
        known = inspect.signature(model_class.forward).parameters
        assert {"input_ids", "stack_operations", "output_stack_attentions"} <= set(known)


@families
def test_every_layer_is_eq_24_to_26(model_class: Any, config: Any):
    """The sub-layer's output from the reference, the actions from the weights, the operations from the output."""
    model = new(model_class, config).double()
    layers = model.base_model.h if model_class is StackGPT2ForCausalLM else model.base_model.encoder.layer
    seen: list[tuple[Tensor, Tensor]] = []
    for layer in layers:
        layer.stack.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))
    outputs = model(**inputs(3, 9, 0), output_stack_attentions=True)
    assert len(seen) == len(outputs.stack_attentions) == len(outputs.stack_actions) == 2
    for layer, (before, after), alpha, actions in zip(
        layers, seen, outputs.stack_attentions, outputs.stack_actions, strict=True
    ):
        weight, bias = layer.stack.action.weight, layer.stack.action.bias
        assert_close(actions, (before @ weight.T + bias).softmax(-1))  # Eq. 24
        assert_close(alpha, stack_attention_reference(actions))  # Eq. 19-23
        assert_close(after, torch.einsum("bin,bnd->bid", alpha, before) + before)  # Eq. 25 and 26


@families
def test_stacks_are_returned_only_when_asked_for(model_class: Any, config: Any):
    model, batch = new(model_class, config), inputs(2, 5, 0)
    assert model(**batch).stack_attentions is None
    outputs = model(**batch, output_stack_attentions=True)
    assert [tuple(alpha.shape) for alpha in outputs.stack_attentions] == [(2, 5, 5)] * 2
    as_tuple = model(**batch, output_stack_attentions=True, return_dict=False)
    assert torch.equal(as_tuple[-2][0], outputs.stack_attentions[0])
    model.config.output_stack_attentions = True
    assert model(**batch).stack_attentions is not None
    assert model(**batch, output_stack_attentions=False).stack_attentions is None


@families
@pytest.mark.parametrize("multi_pop", [1, 2])
def test_given_operations_are_the_recursion_on_them(
    model_class: Any, config: Any, multi_pop: int, monkeypatch: pytest.MonkeyPatch
):
    """Section 3.4, also for rows that begin with padding."""
    model, batch = new(model_class, config, multi_pop=multi_pop).double(), inputs(4, 9, 0)
    batch["attention_mask"][1, :3] = 0
    batch["input_ids"][1, 3] = BOS
    operations = torch.randint(0, 2 + multi_pop, (4, 9), generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(stack_layer, "stack_attention", None)  # nothing goes through the positions one by one
    outputs = model(**batch, stack_operations=operations, output_stack_attentions=True)
    one_hot = torch.nn.functional.one_hot(operations, 2 + multi_pop).double()
    one_hot[1, :3] = torch.eye(2 + multi_pop, dtype=torch.double)[-1]
    expected = stack_attention_reference(one_hot, start=torch.tensor([0, 3, 0, 0]))
    for alpha in outputs.stack_attentions:
        assert torch.equal(alpha, expected)


def test_given_operations_serve_generation_too():
    """With a cache they are one-hot actions of the recursion: the same logits."""
    model, batch = new(StackGPT2ForCausalLM, gpt2), inputs(2, 8, 0)
    operations = torch.randint(0, 3, (2, 8), generator=torch.Generator().manual_seed(1))
    whole = model(**batch, stack_operations=operations).logits
    first = model(batch["input_ids"][:, :5], stack_operations=operations[:, :5], use_cache=True)
    then = model(batch["input_ids"][:, 5:], stack_operations=operations[:, 5:], past_key_values=first.past_key_values)
    assert_close(torch.cat([first.logits, then.logits], 1), whole)


def test_padding_does_nothing_to_the_stack():
    """A position that the mask hides is a no-op, wherever it is."""
    model, batch = new(StackGPT2ForCausalLM, gpt2), inputs(2, 9, 0)
    batch["attention_mask"][:, 4] = 0
    outputs = model(**batch, output_stack_attentions=True)
    for alpha, actions in zip(outputs.stack_attentions, outputs.stack_actions, strict=True):
        assert (most_probable_operations(actions)[:, 4] == 2).all()
        assert torch.equal(alpha[:, 4], alpha[:, 3])


def test_encoded_positions_with_an_encoder():
    """As the decoder of an encoder-decoder: its cache holds two."""
    torch.manual_seed(0)
    model = StackGPT2ForCausalLM(gpt2(add_cross_attention=True, position_embedding_type="rotary")).eval()
    seen, ids = torch.randn(2, 5, 16), inputs(2, 8, 0)["input_ids"]
    expected = model(ids, encoder_hidden_states=seen).logits
    first = model(ids[:, :7], encoder_hidden_states=seen, use_cache=True)
    then = model(ids[:, 7:], encoder_hidden_states=seen, past_key_values=first.past_key_values)
    assert_close(torch.cat([first.logits, then.logits], 1), expected)


def test_layers_on_other_devices_get_their_context():
    """accelerate sends every argument that has `to` to the device of the layer."""
    context = StackContext(start=torch.zeros(2, dtype=torch.long), record=[])
    moved = send_to_device({"stack_context": context}, torch.device("meta"))["stack_context"]
    assert moved.start.device.type == "meta"
    assert moved.record is context.record


def test_the_pooler_reads_the_first_token_behind_padding():
    model = new(StackRobertaModel, roberta)
    batch = inputs(2, 6, 0)
    padded = {name: torch.nn.functional.pad(x, (3, 0), value=name == "input_ids") for name, x in batch.items()}
    assert_close(model(**padded).pooler_output, model(**batch).pooler_output)
