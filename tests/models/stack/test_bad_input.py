"""What cannot be right is refused, by a typed error that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import Cache, DynamicIndexedLayer

from hf_mech.models.stack import (
    StackError,
    StackGPT2ForCausalLM,
    StackRobertaForCausalLM,
    StackRobertaForMaskedLM,
)

from .contract import gpt2, inputs, roberta


@pytest.mark.parametrize("config", [gpt2, roberta])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"position_embedding_type": "rope"}, "'rope'"),
        ({"multi_pop": 0}, "multi_pop must be at least 1, got 0"),
        ({"stack_bottom": "bos_token", "bos_token_id": None}, "stack_bottom='first_token'"),
        ({"stack_bottom": "bos"}, "one of 'first_token', 'bos_token', got 'bos'"),
    ],
)
def test_options_that_no_model_can_have(config: Any, options: dict[str, Any], says: str):
    plain = config().to_dict()
    with pytest.raises(StackError, match=says):
        type(config())(**{**plain, **options})


def test_sizes_that_an_encoding_cannot_have():
    with pytest.raises(StackError, match="even hidden_size, got 15"):
        type(gpt2())(n_embd=15, n_head=3, position_embedding_type="sinusoidal")
    with pytest.raises(StackError, match="18 / 6 = 3"):
        type(gpt2())(n_embd=18, n_head=6, position_embedding_type="rotary")
    with pytest.raises(StackError, match="multiple of num_attention_heads"):
        type(gpt2())(n_embd=16, n_head=3)


def test_attention_that_is_reordered_has_no_encoding():
    with pytest.raises(StackError, match="reorder_and_upcast_attn=False"):
        type(gpt2())(n_embd=16, n_head=2, reorder_and_upcast_attn=True, position_embedding_type="alibi")


def test_without_a_stack_no_bos_is_needed():
    sizes = {"n_embd": 16, "n_head": 2, "n_layer": 1, "vocab_size": 13}
    config = type(gpt2())(**sizes, use_stack=False, bos_token_id=None, stack_bottom="bos_token")
    assert StackGPT2ForCausalLM(config)(torch.tensor([[5, 6]])).logits.shape == (1, 2, 13)


@pytest.mark.parametrize(("model_class", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)])
def test_position_0_must_be_the_bos_where_that_is_asked_for(model_class: Any, config: Any):
    model, batch = model_class(config(stack_bottom="bos_token")), inputs(3, 6, 0)
    batch["input_ids"][1, 0] = 7
    with pytest.raises(StackError, match=r"must be the token 0 .* got 7 in row 1.*add_bos_token=True.*'first_token'"):
        model(**batch)
    padded = {
        name: torch.nn.functional.pad(x, (2, 0), value=name == "input_ids") for name, x in inputs(3, 6, 0).items()
    }
    model(**padded)
    with pytest.raises(StackError, match="attention_mask if padding comes before"):
        model(padded["input_ids"])


def test_longer_than_the_learned_positions():
    with pytest.raises(StackError, match="33 tokens is longer than the 32 positions"):
        StackGPT2ForCausalLM(gpt2())(**inputs(1, 33, 0))
    with pytest.raises(StackError, match="31 tokens is longer than the 30 positions"):  # RoBERTa's begin at 2
        StackRobertaForMaskedLM(roberta())(**inputs(1, 31, 0))
    model, batch = StackGPT2ForCausalLM(gpt2()).eval(), inputs(1, 30, 0)
    for cache in (None, "static"):
        with pytest.raises(StackError):
            model.generate(
                **batch, max_new_tokens=8, min_new_tokens=8, cache_implementation=cache, disable_compile=True
            )


FIRST = {StackGPT2ForCausalLM: 0, StackRobertaForMaskedLM: 2}  # the first position; both have learned up to 31
families = pytest.mark.parametrize(
    ("model_class", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)]
)


@families
@pytest.mark.parametrize("use_stack", [True, False])
def test_padding_takes_no_positions(model_class: Any, config: Any, use_stack: bool):
    """A row of 40 columns, 25 of them tokens; a stock GPT-2 counts columns, and so does the model without a stack."""
    model, batch = model_class(config(use_stack=use_stack)).eval(), inputs(2, 25, 0)
    padded = {name: torch.nn.functional.pad(x, (15, 0), value=name == "input_ids") for name, x in batch.items()}
    if model_class is StackGPT2ForCausalLM and not use_stack:
        with pytest.raises(StackError, match="40 tokens is longer than the 32"):
            model(**padded)
    else:
        torch.testing.assert_close(model(**padded).logits[:, 15:], model(**batch).logits, rtol=1e-4, atol=1e-5)
    padded["attention_mask"][1], padded["input_ids"][1] = 1, 5
    with pytest.raises(StackError, match="40 tokens is longer"):
        model(**padded)


@families
def test_packed_rows_longer_than_the_table(model_class: Any, config: Any):
    """Two sequences that fit, in a row that does not; and positions beyond the table, or before it."""
    model, ids, first = model_class(config()).eval(), inputs(1, 50, 0)["input_ids"], FIRST[model_class]
    places = torch.arange(50).remainder(25)[None] + first
    alone = torch.cat([model(ids[:, :25]).logits, model(ids[:, 25:]).logits], 1)
    torch.testing.assert_close(model(ids, position_ids=places).logits, alone, rtol=1e-4, atol=1e-5)
    with pytest.raises(StackError, match=f"position_ids go from {first + 20} to {first + 44}, .* {first} to 31"):
        model(ids, position_ids=places + 20)
    with pytest.raises(StackError, match="position_ids go from -1 to"):
        model(ids[:, :5], position_ids=torch.arange(5)[None] - 1)


def test_generation_behind_padding_goes_on_to_the_last_position():
    model, batch = StackGPT2ForCausalLM(gpt2()).eval(), inputs(1, 20, 0)
    padded = {name: torch.nn.functional.pad(x, (10, 0), value=name == "input_ids") for name, x in batch.items()}
    made = model.generate(**padded, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    expected = model.generate(**batch, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    assert torch.equal(made[:, 10:], expected)
    with pytest.raises(StackError):
        model.generate(**padded, max_new_tokens=14, min_new_tokens=14, do_sample=False)


def test_a_decoder_is_not_an_encoder():
    with pytest.raises(StackError, match="is_decoder=True"):
        StackRobertaForCausalLM(roberta())


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        (torch.zeros(2, 5, dtype=torch.long), r"\[2, 6\], got \[2, 5\]"),
        (torch.full((2, 6), 5), "there is 5"),
        (torch.zeros(2, 6), "must be integers"),
    ],
)
def test_operations_that_do_not_fit(operations: torch.Tensor, says: str):
    with pytest.raises(StackError, match=says):
        StackGPT2ForCausalLM(gpt2())(**inputs(2, 6, 0), stack_operations=operations)


def test_neither_ids_nor_embeddings():
    with pytest.raises(StackError, match="input_ids or inputs_embeds"):
        StackRobertaForMaskedLM(roberta())()
    with pytest.raises(StackError, match="input_ids or inputs_embeds"):
        StackGPT2ForCausalLM(gpt2())()


# ---------------------------------------------------------------------------------------------------------- caches


def test_a_cache_that_a_model_without_a_stack_has_filled():
    batch = inputs(2, 8, 0)
    config = GPT2Config(n_layer=2, n_embd=16, n_head=2, n_positions=32, vocab_size=13)
    cache = GPT2LMHeadModel(config)(batch["input_ids"][:, :5], use_cache=True).past_key_values
    with pytest.raises(StackError, match="came from a model without a stack"):
        StackGPT2ForCausalLM(gpt2())(batch["input_ids"][:, 5:], past_key_values=cache)


def test_a_cache_that_cannot_hold_a_stack():
    cache = Cache(layers=[DynamicIndexedLayer() for _ in range(2)])
    with pytest.raises(StackError, match="DynamicIndexedLayer; leave cache_implementation out"):
        StackGPT2ForCausalLM(gpt2())(**inputs(2, 8, 0), past_key_values=cache)


@pytest.mark.parametrize(("model_class", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)])
def test_a_misspelt_argument_of_the_stack(model_class: Any, config: Any):
    with pytest.raises(TypeError, match=r"no argument 'output_stack_attention'; .* output_stack_attentions"):
        model_class(config())(**inputs(2, 5, 0), output_stack_attention=True)
