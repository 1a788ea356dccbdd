"""The habits that transformers' common tests check of every model: arguments, outputs, embeddings, checkpointing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaForCausalLM
from hf_mech.models.stack.stack_layer import StackSubLayer

from .contract import StackLlamaForCausalLM, gpt2, predicting_tokens
from .stock import STOCK, config, every_second, heads, logits_of, new, stock_model

decoders = pytest.mark.parametrize(
    "ours", [StackGPT2ForCausalLM, StackRobertaForCausalLM, StackLlamaForCausalLM], ids=lambda head: head.__name__
)


@heads
def test_every_argument_of_the_stock_forward_is_named(ours: Any):
    stock = inspect.signature(STOCK[ours][0].forward).parameters
    assert set(stock) <= set(inspect.signature(ours.forward).parameters)


@every_second
def test_hidden_states_and_attentions_are_those_of_stock(ours: Any):
    """With a gate of zero; as outputs and as tuples."""
    theirs, model, batch = stock_model(ours), new(ours, stack_gate=True), STOCK[ours][1](2, 6, 0)
    model.load_state_dict(theirs.state_dict(), strict=False)
    asked = {"output_hidden_states": True, "output_attentions": True}
    for one in (theirs, model):
        one.set_attn_implementation("eager")
    outputs, expected = model(**batch, **asked), theirs(**batch, **asked)
    for name in ("hidden_states", "attentions"):
        for ours_, stock in zip(outputs[name], expected[name], strict=True):
            assert torch.equal(ours_, stock), name
    assert len(model(**batch, **asked, return_dict=False)) == len(theirs(**batch, **asked, return_dict=False))


@every_second
def test_hidden_states_and_attentions_get_gradients(ours: Any):
    model = new(ours)
    model.set_attn_implementation("eager")
    outputs = model(**STOCK[ours][1](2, 6, 0), output_hidden_states=True, output_attentions=True)
    seen = (*outputs.hidden_states, *outputs.attentions)
    for tensor in seen:
        tensor.retain_grad()
    outputs.loss.backward()
    assert all(tensor.grad is not None for tensor in seen)


@heads
def test_embeddings_are_taken_for_ids(ours: Any):
    model, batch = new(ours), STOCK[ours][1](2, 6, 0)
    expected = logits_of(model(**batch))
    embeds = model.get_input_embeddings()(batch.pop("input_ids"))
    for logits, wanted in zip(logits_of(model(inputs_embeds=embeds, **batch)), expected, strict=True):
        assert torch.equal(logits, wanted)


@every_second
def test_the_vocabulary_is_resized(ours: Any, tmp_path: Path):
    model, batch = new(ours), STOCK[ours][1](2, 6, 0)
    model.resize_token_embeddings(20, mean_resizing=False)
    model(**batch).loss.backward()
    assert model.config.vocab_size == len(model.get_input_embeddings().weight) == 20
    output = model.get_output_embeddings()
    assert (output is not None) == ours.__name__.endswith("LM")
    if output is not None:
        tied = output.weight is model.get_input_embeddings().weight
        assert tied == model.config.tie_word_embeddings
        assert model(**batch).logits.shape[-1] == 20
    model.save_pretrained(tmp_path)
    loaded, saved = ours.from_pretrained(tmp_path), model.state_dict()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in loaded.state_dict().items())
    for logits, wanted in zip(logits_of(loaded(**batch)), logits_of(model(**batch)), strict=True):
        assert_close(logits, wanted)  # the addresses of equal weights decide how sums are rounded


@decoders
def test_generation_from_embeddings_is_generation_from_ids(ours: Any):
    model, batch = new(ours), predicting_tokens(2, 6, 0)
    how = {"attention_mask": batch["attention_mask"], "max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    embeds = model.get_input_embeddings()(batch["input_ids"])
    expected = model.generate(batch["input_ids"], **how)[:, 6:]
    assert torch.equal(model.generate(inputs_embeds=embeds, **how), expected)


@decoders
def test_assisted_generation_is_plain_generation(ours: Any):
    """Rejected drafts are taken off the cache again."""
    model, ids = new(ours), predicting_tokens(1, 6, 0)["input_ids"]
    how = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    expected = model.generate(ids, **how)
    assert torch.equal(model.generate(ids, prompt_lookup_num_tokens=2, **how), expected)


@every_second
def test_checkpointing_by_the_configuration_is_checkpointing(ours: Any):
    """The key has its effect on the layers with stacks, and is used up, as in stock models."""
    batch = STOCK[ours][1](2, 6, 0)
    torch.manual_seed(0)
    model, plain = ours(config(ours, gradient_checkpointing=True)).train(), new(ours)
    first = next(module for module in model.modules() if isinstance(module, StackSubLayer))
    calls = []
    first.register_forward_pre_hook(lambda *_: calls.append(1))
    rates = [module for one in (model, plain) for module in one.modules() if isinstance(module, torch.nn.Dropout)]
    for module in rates:
        module.p = 0.0
    model(**batch).loss.backward()
    plain.train()(**batch).loss.backward()
    assert len(calls) == 2  # once more in the backward pass
    assert not hasattr(model.config, "gradient_checkpointing")
    for (name, ours_), other in zip(model.named_parameters(), plain.named_parameters(), strict=True):
        assert_close(ours_.grad, other[1].grad, msg=lambda text, name=name: f"{name}: {text}")


def test_key_mapping_that_exchanges_names(tmp_path: Path):
    """Shapes are compared under the names that the weights get."""
    model = StackGPT2ForCausalLM(gpt2())
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    exchanged = {"transformer.wte.weight": "transformer.wpe.weight", "transformer.wpe.weight": "transformer.wte.weight"}
    save_file({exchanged.get(name, name): tensor for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    mapping = {"wte": "aside", "wpe": "wte", "aside": "wpe"}
    loaded = StackGPT2ForCausalLM.from_pretrained(tmp_path, key_mapping=mapping)
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in model.state_dict().items())
    with pytest.raises(StackError, match=r"transformer\.wpe\.weight is"):
        StackGPT2ForCausalLM.from_pretrained(tmp_path)
