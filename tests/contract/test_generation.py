"""Generation with the cache is generation without it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from .case import ContractCase

pytestmark = pytest.mark.needs("generation")


def generate(case: ContractCase, padding: int, **how: Any) -> Any:
    batch = case.pad(case.questions(3, 6, 0), padding, "left")
    return case.model().generate(
        **batch,
        max_new_tokens=8,
        min_new_tokens=8,
        pad_token_id=int(case.padding["input_ids"]),
        return_dict_in_generate=True,
        output_logits=True,
        **how,
    )


@pytest.mark.feature("`generate`, greedy and beams, cached as uncached")
@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("beams", [1, 3])
def test_cached_is_uncached(case: ContractCase, padding: int, beams: int):
    cached = generate(case, padding, do_sample=False, num_beams=beams, use_cache=True)
    uncached = generate(case, padding, do_sample=False, num_beams=beams, use_cache=False)
    assert torch.equal(cached.sequences, uncached.sequences)
    for ours, theirs in zip(cached.logits, uncached.logits, strict=True):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", [0, 3])
def test_generation_is_forward(case: ContractCase, padding: int):
    """The logits by which each token was chosen are those of one forward pass over all of them."""
    generated = generate(case, padding, do_sample=False)
    new = len(generated.logits)
    mask = torch.ones_like(generated.sequences)
    mask[:, :padding] = 0
    with torch.no_grad():
        logits = case.model()(generated.sequences, attention_mask=mask).logits[:, -new - 1 : -1]
    assert_close(torch.stack(generated.logits, 1), logits, rtol=1e-4, atol=1e-4)


def test_cached_sampling_is_uncached_sampling(case: ContractCase):
    drawn = []
    for use_cache in (True, False):
        torch.manual_seed(1)
        drawn.append(generate(case, 2, do_sample=True, use_cache=use_cache).sequences)
    assert torch.equal(*drawn)


@pytest.mark.feature("static cache")
@pytest.mark.parametrize("padding", [0, 3])
def test_static_cache_is_dynamic_cache(case: ContractCase, padding: int):
    dynamic = generate(case, padding, do_sample=False)
    static = generate(case, padding, do_sample=False, cache_implementation="static", disable_compile=True)
    assert torch.equal(dynamic.sequences, static.sequences)
    for ours, theirs in zip(static.logits, dynamic.logits, strict=True):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_compiled_generation_is_plain(case: ContractCase):
    batch = case.pad(case.questions(3, 6, 0), 2, "left")
    how = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    model = case.model()
    plain = model.generate(**batch, **how)
    # generate() compiles by itself on a GPU only; this is what it does there.
    model.forward = torch.compile(model.forward)
    assert torch.equal(model.generate(**batch, **how, cache_implementation="static"), plain)


@pytest.mark.feature("`generate` with left padding")
def test_left_padding_changes_no_token(case: ContractCase):
    plain, padded = generate(case, 0, do_sample=False), generate(case, 4, do_sample=False)
    assert torch.equal(plain.sequences, padded.sequences[:, 4:])


def test_sampling_is_a_function_of_the_seed(case: ContractCase):
    torch.manual_seed(1)
    first = generate(case, 0, do_sample=True)
    torch.manual_seed(1)
    assert torch.equal(first.sequences, generate(case, 0, do_sample=True).sequences)
