"""The stack in transformers' caches: in chunks, cropped, repeated, reordered, reset, growing."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache, StaticCache

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM

from .contract import BOS, gpt2, inputs, predicting_tokens


def model(**options: object) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM(gpt2(**options)).eval().double()


@pytest.mark.parametrize("chunks", [[1] * 12, [5, 7], [4, 1, 1, 3, 3]])
@pytest.mark.parametrize("kind", ["dynamic", "plain", "static"])
def test_chunks_are_the_whole(chunks: list[int], kind: str):
    ours, batch = model(multi_pop=3), inputs(3, 12, 0)
    caches = {"dynamic": DynamicCache(config=ours.config), "plain": DynamicCache()}
    cache = caches[kind] if kind != "static" else StaticCache(config=ours.config, max_cache_len=16)
    expected = ours(**batch).logits
    parts = [ours(part, past_key_values=cache).logits for part in batch["input_ids"].split(chunks, 1)]
    assert_close(torch.cat(parts, 1), expected)


def test_later_chunks_have_their_gradient():
    """What the cache keeps has none; the new positions have theirs, as in stock GPT-2."""
    ours, batch = model(), predicting_tokens(3, 9, 0)
    with torch.no_grad():
        cache = ours(batch["input_ids"][:, :5], use_cache=True).past_key_values
    ours(batch["input_ids"][:, 5:], labels=batch["labels"][:, 5:], past_key_values=cache).loss.backward()
    for layer in ours.transformer.h:
        assert layer.stack.action.weight.grad.any()


@pytest.mark.parametrize("static", [False, True])
def test_prefill_in_chunks_behind_padding(static: bool):
    """Rows may begin in any of the chunks."""
    ours, batch = model(stack_bottom="bos_token"), inputs(3, 9, 0)
    batch["attention_mask"][1, :5], batch["input_ids"][1, 5] = 0, BOS
    batch["attention_mask"][2, :2], batch["input_ids"][2, 2] = 0, BOS
    cache = StaticCache(config=ours.config, max_cache_len=12) if static else DynamicCache(config=ours.config)
    expected, ids, mask = ours(**batch).logits, batch["input_ids"], batch["attention_mask"]
    parts = [
        ours(ids[:, a:b], attention_mask=mask[:, :b], past_key_values=cache).logits for a, b in ((0, 4), (4, 8), (8, 9))
    ]
    real = mask.bool()
    assert_close(torch.cat(parts, 1)[real], expected[real])
    ids[1, 5] = 7
    cache.reset()
    ours(ids[:, :4], attention_mask=mask[:, :4], past_key_values=cache)
    with pytest.raises(StackError, match="got 7 in row 1"):
        ours(ids[:, 4:8], attention_mask=mask[:, :8], past_key_values=cache)


def test_a_cache_cropped_to_nothing_is_an_empty_one():
    ours, ids = model(), inputs(3, 8, 0)["input_ids"]
    cache = filled(ours, ids)
    cache.crop(-8)
    assert_close(ours(ids, past_key_values=cache).logits, ours(ids).logits)


def filled(ours: StackGPT2ForCausalLM, ids: torch.Tensor) -> DynamicCache:
    cache = DynamicCache(config=ours.config)
    ours(ids, past_key_values=cache)
    return cache


def test_cropping_forgets_the_last_tokens():
    ours, ids = model(), inputs(3, 12, 0)["input_ids"]
    cache = filled(ours, torch.cat([ids[:, :7], ids[:, 3:6]], 1))
    cache.crop(-3)
    assert_close(ours(ids[:, 7:], past_key_values=cache).logits, ours(ids).logits[:, 7:])


def test_rows_can_be_repeated_chosen_and_reordered():
    ours, ids = model(), inputs(3, 12, 0)["input_ids"]
    expected = ours(ids).logits[:, 7:]
    cache = filled(ours, ids[:, :7])
    cache.batch_repeat_interleave(2)
    cache.batch_select_indices(torch.tensor([0, 2, 4]))
    cache.reorder_cache(torch.tensor([2, 0, 1]))
    order = torch.tensor([2, 0, 1])
    assert_close(ours(ids[order, 7:], past_key_values=cache).logits, expected[order])


@pytest.mark.parametrize("static", [False, True])
def test_a_reset_cache_is_an_empty_one(static: bool):
    ours, ids = model(), inputs(3, 12, 0)["input_ids"]
    cache = StaticCache(config=ours.config, max_cache_len=16) if static else DynamicCache(config=ours.config)
    ours(ids[:, :9], past_key_values=cache)
    cache.reset()
    first, then = ours(ids[:, :1], past_key_values=cache).logits, ours(ids[:, 1:], past_key_values=cache).logits
    assert_close(torch.cat([first, then], 1), ours(ids).logits)


def test_training_with_a_cache_has_the_gradient_of_training_without():
    """GPT-2 makes a cache by default, in training too."""
    batch = predicting_tokens(3, 9, 0)
    found = []
    for use_cache in (True, False):
        ours = model()
        ours(**batch, use_cache=use_cache).loss.backward()
        found.append([weight.grad for weight in ours.parameters()])
    for with_cache, without in zip(*found, strict=True):
        assert torch.equal(with_cache, without)
