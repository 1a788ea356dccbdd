"""The stack by its levels equals stack attention, is exact within a bound, and its memory grows with the length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache, StaticCache

from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM, read_stack, stack_attention
from hf_mech.models.stack.stack_layer import StackSubLayer
from hf_mech.models.stack.stack_levels import Levels, moved, moves, next_levels

from .contract import gpt2, inputs, predicting_tokens

LENGTH, SIZE = 90, 5


def random_stack(pops: int, hardness: float = 1.0, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    """Actions [4, 90, 2 + K], what the positions hold with a column of ones, and the columns of position 0."""
    generator = torch.Generator().manual_seed(0)
    actions = (hardness * torch.randn(4, LENGTH, 2 + pops, generator=generator, dtype=dtype)).softmax(-1)
    values = torch.randn(4, LENGTH, SIZE, generator=generator, dtype=dtype)
    return actions, torch.nn.functional.pad(values, (0, 1), value=1), torch.tensor([0, 3, 40, LENGTH - 1])


def followed(levels: Levels, given: tuple[torch.Tensor, ...], chunks: list[int]) -> torch.Tensor:
    actions, values, start = given
    actions, tops = actions.clone(), []
    for new in chunks:
        tops.append(levels.follow(values, actions, start, levels.built + new))
    return torch.cat(tops, 1)


@pytest.mark.parametrize("pops", [1, 3])
@pytest.mark.parametrize("hardness", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("chunks", [[LENGTH], [1] * LENGTH, [5, 1, 33, 1, 1, 49]])
def test_the_tops_are_those_of_stack_attention(pops: int, hardness: float, chunks: list[int]):
    actions, values, start = given = random_stack(pops, hardness)
    expected = read_stack(stack_attention(actions, start=start), values[..., :-1])
    assert_close(followed(Levels(0.0), given, chunks), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [LENGTH - 1, 85, 41, 3, 0])
def test_positions_can_be_forgotten(length: int):
    given = random_stack(2)
    levels = Levels(0.0)
    expected = followed(levels, given, [LENGTH])
    levels.forget(length)
    again = followed(levels, given, [LENGTH - levels.built])
    assert_close(again[:, length - LENGTH :], expected[:, length:])


def test_long_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch):
    expected = followed(Levels(0.0), random_stack(1), [LENGTH])
    monkeypatch.setattr("hf_mech.models.stack.stack_levels.DEEP", 20)
    levels = Levels(0.0)
    assert_close(followed(levels, random_stack(1), [LENGTH]), expected, rtol=0, atol=1e-12)


def test_the_moves_of_some_steps():
    actions = torch.tensor([[[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]])  # push, pop, no-op
    expected = [0.05, 0.5 * 0.3 + 0.3 * 0.1, 0.5 * 0.6 + 0.3 * 0.3 + 0.2 * 0.1, 0.3 * 0.6 + 0.2 * 0.3, 0.12]
    assert_close(moves(actions)[0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-7)


def test_deep_levels_move_as_step_by_step():
    generator = torch.Generator().manual_seed(0)
    actions = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64).softmax(-1)
    levels = torch.randn(2, 40, 3, generator=generator, dtype=torch.float64)
    bottom = torch.randn(2, 1, 3, generator=generator, dtype=torch.float64)
    steps = torch.cat([levels, bottom.expand(-1, 60, -1)], 1)
    for action in actions.unbind(1):
        steps = next_levels(steps, bottom, action)  # what is pushed does not reach them
    assert_close(moved(levels, bottom, moves(actions), 0.0), steps[:, 6:46])


@pytest.mark.parametrize("tolerance", [1e-3, 0.3])
@pytest.mark.parametrize("hardness", [1.0, 5.0])
def test_the_error_is_within_the_tolerance(tolerance: float, hardness: float):
    """For any actions: read with the identity in place of the values, the levels show rows of alpha."""
    actions, _, start = random_stack(1, hardness)
    values = torch.nn.functional.pad(torch.eye(LENGTH).double(), (0, 1), value=1).expand(4, -1, -1)
    levels = Levels(StackSubLayer(StackGPT2Config(stack_tolerance=tolerance, n_positions=LENGTH), 0).drop)
    alpha = followed(levels, (actions, values, start), [LENGTH])
    error = (alpha - stack_attention(actions, start=start)).abs().sum(-1)
    assert error.max() <= tolerance
    assert error.max() > 0  # something was left out
    exact = Levels(0.0)
    followed(exact, (actions, values, start), [LENGTH])
    assert levels.below.shape[1] < exact.below.shape[1]


def model(**options: Any) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM(gpt2(**options)).eval().double()


@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
@pytest.mark.parametrize("cached", [True, False])
def test_long_texts_are_read_from_the_levels(monkeypatch: pytest.MonkeyPatch, tolerance: float, cached: bool):
    ours, batch = model(stack_tolerance=tolerance), inputs(3, 12, 0)
    batch["attention_mask"][1, :5] = 0
    with torch.no_grad():
        expected = ours(**batch, use_cache=cached).logits
        monkeypatch.setattr("hf_mech.models.stack.stack_layer.LONG", 4)
        monkeypatch.setattr("hf_mech.models.stack.stack_layer.stack_attention", None)
        logits = ours(**batch, use_cache=cached).logits
    assert_close(logits, expected)
    assert batch["attention_mask"].any()


def test_recorded_stacks_are_those_without_a_cache():
    ours, batch = model(), inputs(3, 12, 0)
    expected = ours(**batch, output_stack_attentions=True).stack_attentions[0]
    for cache in (DynamicCache(), StaticCache(config=ours.config, max_cache_len=16)):
        first = 0
        for ids in batch["input_ids"].split([4, 1, 1, 3, 3], 1):
            with torch.no_grad():
                output = ours(ids, past_key_values=cache, output_stack_attentions=True)
            last = first + ids.shape[1]
            assert_close(output.stack_attentions[0][..., :last], expected[:, first:last, :last])
            assert not output.stack_attentions[0][..., last:].any()
            first = last


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("options", [{"stack_tolerance": 1e-6}, {"multi_pop": 3}])
def test_it_generates_the_same(beams: int, options: dict[str, Any]):
    batch = inputs(3, 6, 0)
    batch["attention_mask"][1, :2] = 0
    asked = {"max_new_tokens": 24, "min_new_tokens": 24, "num_beams": beams, "do_sample": False}
    ours = model(**options)
    cached, uncached = (ours.generate(**batch, **asked, use_cache=use_cache) for use_cache in (True, False))
    assert torch.equal(cached, uncached)


def test_the_memory_grows_with_the_length():
    ours = model(position_embedding_type="none")
    held = {}
    with torch.no_grad():
        for length in (50, 100, 200):
            cache = DynamicCache()
            ids = inputs(1, length, 0)["input_ids"]
            ours(ids[:, :-1], past_key_values=cache)
            ours(ids[:, -1:], past_key_values=cache)
            state = cache.layers[0].stack
            tensors = (state.actions, state.values, state.levels.below)
            held[length] = sum(tensor.nbytes for tensor in tensors)
    assert held[100] <= 2.2 * held[50]
    assert held[200] <= 2.2 * held[100]


def test_gradients_flow_through_whole_rows():
    ours, exact = model(stack_tolerance=0.3), model()
    batch = predicting_tokens(3, 9, 0)
    ours.train()(**batch, use_cache=True).loss.backward()
    exact.train()(**batch).loss.backward()
    for mine, theirs in zip(ours.parameters(), exact.parameters(), strict=True):
        assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("wrong", [-0.1, 2.0, float("nan")])
def test_a_tolerance_out_of_its_range_is_refused(wrong: float):
    with pytest.raises(ValueError, match="stack_tolerance"):
        gpt2(stack_tolerance=wrong)


def test_long_texts_are_trained_on_the_levels(monkeypatch: pytest.MonkeyPatch):
    found = []
    batch = predicting_tokens(3, 24, 0)
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    batch["attention_mask"][1, :5] = 0
    for long in (1000, 4):
        monkeypatch.setattr("hf_mech.models.stack.stack_layer.LONG", long)
        ours = model(multi_pop=2).train()
        ours(**batch).loss.backward()
        found.append([weight.grad for weight in ours.parameters()])
    for with_alpha, with_levels in zip(*found, strict=True):
        assert_close(with_levels, with_alpha)


@pytest.mark.gpu
@pytest.mark.parametrize("pops", [1, 3])
def test_on_a_gpu(pops: int):
    """Values and gradients are those of the CPU's stack attention."""
    actions, values, start = random_stack(pops)
    grad = torch.randn(4, LENGTH, SIZE, dtype=torch.float64)
    found = []
    for device in ("cpu", "cuda"):
        given = [tensor.detach().to(device, copy=True).requires_grad_() for tensor in (actions.log(), values[..., :-1])]
        chosen = given[0].softmax(-1)  # the gradient is that of distributions
        if device == "cpu":
            read = read_stack(stack_attention(chosen, start=start), given[1])
        else:
            with_ones = torch.nn.functional.pad(given[1], (0, 1), value=1)
            read = Levels(0.0).follow(with_ones, chosen.clone(), start.to(device), LENGTH)
        gradients = torch.autograd.grad(read, given, grad.to(device))
        found.append([tensor.cpu() for tensor in (read.detach(), *gradients)])
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)
