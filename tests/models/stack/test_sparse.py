"""Long contexts: rows of few entries are right within their bound, and the cache holds little."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, stack_attention
from hf_mech.models.stack.stack_sparse import SparseRows

from .contract import BOS, gpt2, inputs, predicting_tokens

TOLERANCE = 1e-3


def rows_of(actions: torch.Tensor, start: torch.Tensor, drop: float, compiled: bool) -> SparseRows:
    rows = SparseRows(drop, actions[:, 0])
    if not compiled:
        rows.scratch = None
    else:
        assert rows.scratch is not None
    for i in range(actions.shape[1]):
        rows.step(actions[:, i], start)
    return rows


compiled = pytest.mark.parametrize("compiled", [True, False])


@compiled
@pytest.mark.parametrize("pops", [1, 3])
@pytest.mark.parametrize("hardness", [1.0, 5.0, 30.0])
def test_the_error_is_within_its_bound(pops: int, hardness: float, compiled: bool):
    generator = torch.Generator().manual_seed(0)
    actions = (hardness * torch.randn(3, 40, 2 + pops, generator=generator, dtype=torch.float64)).softmax(-1)
    start = torch.tensor([0, 4, 1])
    rows, alpha = rows_of(actions, start, 1e-4, compiled), stack_attention(actions, start=start)
    error = (rows.dense() - alpha).abs().sum(-1)
    assert (error <= rows.error[:, :40] + 1e-12).all()
    if hardness > 1:
        assert error.any()  # something was dropped
    if hardness == 30:
        assert rows.index.shape[2] < 20


@compiled
def test_nothing_is_dropped_without_a_tolerance(compiled: bool):
    actions = torch.randn(2, 30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(-1)
    start = torch.tensor([0, 3])
    assert_close(rows_of(actions, start, 0.0, compiled).dense(), stack_attention(actions, start=start))


@compiled
def test_given_operations_have_one_entry_a_row(compiled: bool):
    """Exact zeros among the actions."""
    operations = torch.randint(0, 3, (2, 40), generator=torch.Generator().manual_seed(0))
    actions = torch.nn.functional.one_hot(operations, 3).double()
    rows = rows_of(actions, torch.zeros(2, dtype=torch.long), 1e-6, compiled)
    assert torch.equal(rows.dense(), stack_attention(actions))
    assert not rows.error.any()
    assert ((rows.weight[:, :40] > 0).sum(-1) == 1).all()


def models(certainty: float = 20, **options: Any) -> tuple[StackGPT2ForCausalLM, StackGPT2ForCausalLM]:
    """The same model with all entries and with few, its actions nearly certain."""
    torch.manual_seed(0)
    whole = StackGPT2ForCausalLM(gpt2(**options)).eval().double()
    for layer in whole.transformer.h:
        layer.stack.action.weight.data *= certainty
    few = StackGPT2ForCausalLM(gpt2(stack_tolerance=TOLERANCE, **options)).eval().double()
    few.load_state_dict(whole.state_dict())
    return whole, few


@pytest.mark.parametrize("values", ["hidden", "recurrent"])
def test_the_model_is_right_within_the_tolerance(values: str):
    whole, few = models(stack_values=values)
    batch = inputs(3, 12, 0)
    batch["attention_mask"][1, :3] = 0
    expected = whole(**batch, output_stack_attentions=True)
    cache, parts, first = DynamicCache(), [], 0
    with torch.no_grad():
        for ids in batch["input_ids"].split([4, 1, 1, 3, 3], 1):
            first += ids.shape[1]
            mask = batch["attention_mask"][:, :first]
            asked = {"attention_mask": mask, "past_key_values": cache, "output_stack_attentions": True}
            parts.append(few(ids, **asked))
    logits = torch.cat([part.logits for part in parts], 1)
    real = batch["attention_mask"].bool()
    assert_close(logits[real], expected.logits[real], rtol=0, atol=TOLERANCE)
    lines = [torch.nn.functional.pad(p.stack_attentions[0], (0, 12 - p.stack_attentions[0].shape[2])) for p in parts]
    assert_close(torch.cat(lines, 1), expected.stack_attentions[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("learning", [True, False])
def test_the_cache_knows_a_bound_of_its_error(learning: bool):
    torch.manual_seed(0)
    few = StackGPT2ForCausalLM(gpt2(stack_tolerance=0.3)).eval()
    ids, cache, actions = inputs(1, 32, 0)["input_ids"], DynamicCache(), []
    with torch.set_grad_enabled(learning):
        for part in ids.split([10, 1, 12, 9], 1):
            output = few(part, past_key_values=cache, output_stack_attentions=True)
            actions.append(output.stack_actions[0].detach().double())
    rows = cache.layers[0].stack.rows
    error = (rows.dense() - stack_attention(torch.cat(actions, 1))).abs().sum(-1)[0]
    assert error.max() > 1e-4  # something was dropped
    assert (error <= rows.error[0, :32] + 1e-6).all()


@pytest.mark.parametrize("beams", [1, 3])
def test_it_generates_the_same(beams: int):
    batch = inputs(3, 6, 0)
    batch["attention_mask"][1, :2] = 0
    asked = {"max_new_tokens": 12, "min_new_tokens": 12, "num_beams": beams, "do_sample": False}
    whole, few = (model.generate(**batch, **asked) for model in models())
    assert torch.equal(whole, few)


def test_the_cache_holds_few_numbers():
    _, few = models(certainty=200)
    ids = inputs(1, 31, 0)["input_ids"]
    with torch.no_grad():
        cache = few(ids, use_cache=True).past_key_values
    stack = cache.layers[0].stack
    assert stack.rows.index.shape[1] <= 2 * 31
    assert stack.rows.index.shape[2] <= 8
    assert not hasattr(stack, "alpha")


def test_it_is_cropped_and_reset():
    _, few = models()
    ids = inputs(2, 12, 0)["input_ids"]
    with torch.no_grad():
        cache = few(ids, use_cache=True).past_key_values
        cache.crop(-5)
        again = few(ids[:, 7:], past_key_values=cache).logits
        assert_close(again, few(ids, use_cache=True).logits[:, 7:], rtol=0, atol=TOLERANCE)
        cache.reset()
        assert not cache.layers[0].stack.begun


def test_gradients_flow_through_whole_rows():
    whole, few = models()
    batch = predicting_tokens(3, 9, 0)
    few.train()(**batch, use_cache=True).loss.backward()
    whole.train()(**batch).loss.backward()
    for ours, all_ in zip(few.parameters(), whole.parameters(), strict=True):
        assert_close(ours.grad, all_.grad)


def test_a_static_cache_is_refused():
    _, few = models()
    with pytest.raises(StackError, match="stack_tolerance has no use there; set it to 0"):
        few.generate(inputs(1, 4, 0)["input_ids"], max_new_tokens=2, cache_implementation="static", pad_token_id=BOS)


@pytest.mark.parametrize("wrong", [-0.1, 2.0, float("nan")])
def test_a_tolerance_out_of_its_range_is_refused(wrong: float):
    with pytest.raises(StackError, match="stack_tolerance"):
        gpt2(stack_tolerance=wrong)
