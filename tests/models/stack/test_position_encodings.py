"""Appendix C: every encoding by its formula, with sdpa, with a cache, without a longest length."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaForCausalLM, StackRobertaForMaskedLM
from hf_mech.models.stack.position_encodings import (
    AlibiEncoding,
    NoPositions,
    RelativeEncoding,
    RotaryEncoding,
    SinusoidalPositions,
    sinusoids,
)

from .contract import gpt2, inputs, roberta

ENCODINGS = ("learned", "none", "sinusoidal", "relative", "rotary", "alibi")


def decoder(**options: Any) -> Any:
    return roberta(is_decoder=True, **options)


MODELS = [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta), (StackRobertaForCausalLM, decoder)]


def pairs(models: list[Any], encodings: tuple[str, ...]) -> pytest.MarkDecorator:
    """Every model with every encoding; in the quick suite each encoding with one model, and each model."""
    cases = [
        pytest.param(*model, encoding, marks=[] if number % len(models) == place else pytest.mark.slow)
        for place, model in enumerate(models)
        for number, encoding in enumerate(encodings)
    ]
    return pytest.mark.parametrize(("model_class", "config", "encoding"), cases)


def new(model_class: Any, config: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return model_class(config(**options)).eval().double()


@pairs(MODELS, ENCODINGS)
def test_eager_is_sdpa_and_padding_changes_nothing(model_class: Any, config: Any, encoding: str):
    batch = inputs(3, 9, 0)
    left = {name: torch.nn.functional.pad(x, (4, 0), value=name == "input_ids") for name, x in batch.items()}
    model = new(model_class, config, position_embedding_type=encoding)
    expected = model(**batch).logits
    assert_close(model(**left).logits[:, 4:], expected, rtol=1e-5, atol=1e-6)  # sines of positions are in float32
    assert_close(model(batch["input_ids"]).logits, expected)  # without a mask
    model.set_attn_implementation("eager")
    assert_close(model(**batch).logits, expected)
    assert_close(model(**left).logits[:, 4:], expected, rtol=1e-5, atol=1e-6)


@pairs([MODELS[0], MODELS[2]], ENCODINGS)
def test_cached_is_uncached(model_class: Any, config: Any, encoding: str):
    model = new(model_class, config, position_embedding_type=encoding)
    batch = {name: torch.nn.functional.pad(x, (2, 0), value=name == "input_ids") for name, x in inputs(3, 6, 0).items()}
    how = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    uncached = model.generate(**batch, **how, use_cache=False)
    for cache in (None, "static"):
        cached = model.generate(**batch, **how, cache_implementation=cache, disable_compile=True)
        assert torch.equal(cached, uncached), cache


@pairs(MODELS, ENCODINGS[1:])
def test_only_learned_positions_end(model_class: Any, config: Any, encoding: str):
    longer = inputs(2, 50, 0)
    assert new(model_class, config, position_embedding_type=encoding)(**longer).logits.isfinite().all()
    with pytest.raises(StackError, match="50"):
        new(model_class, config)(**longer)


@pairs(MODELS, ENCODINGS[2:])
def test_positions_matter(model_class: Any, config: Any, encoding: str):
    """Without a stack and without positions an encoder sees a bag of tokens; with positions it does not."""
    ids = torch.tensor([[0, 4, 5, 6, 7, 8]])
    swapped = torch.tensor([[0, 5, 4, 6, 7, 8]])

    def last(kind: str) -> list[torch.Tensor]:
        model = new(model_class, config, use_stack=False, position_embedding_type=kind)
        return [model(x).logits[:, -1] for x in (ids, swapped)]

    if model_class is StackRobertaForMaskedLM:
        assert_close(*last("none"))
    first, second = last(encoding)
    assert not torch.allclose(first, second, atol=1e-4)


# ----------------------------------------------------------------------------------------------------- the formulas


def heads(batch: int, number: int, length: int, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, number, length, size, generator=generator, dtype=torch.float64)


def test_sinusoids_are_vaswanis():
    values = sinusoids(torch.arange(5), 6, torch.float64)
    for position in range(5):
        for k in range(3):
            angle = position / 10_000 ** (2 * k / 6)
            assert values[position, k] == pytest.approx(math.sin(angle), abs=1e-6)
            assert values[position, k + 3] == pytest.approx(math.cos(angle), abs=1e-6)


def test_relative_is_transformer_xls():
    """The four terms of the score in Dai et al., Section 3.3, one by one."""
    torch.manual_seed(0)
    module = RelativeEncoding(8, 2).double()
    for weight in module.parameters():
        torch.nn.init.normal_(weight)
    query, key = heads(2, 2, 3, 4, 1), heads(2, 2, 5, 4, 2)
    changed, same, bias = module(query, key, 2, 0.5)
    scores = changed @ same.transpose(2, 3) * 0.5 + bias
    for i in range(3):
        for j in range(5):
            distance = sinusoids(torch.tensor(2 + i - j), 8, torch.float64)
            projected = (module.distance.weight @ distance).view(2, 4)
            q, k = query[:, :, i], key[:, :, j]
            u, v = module.content_bias[:, 0], module.distance_bias[:, 0]
            terms = (q * k).sum(-1) + (q * projected).sum(-1) + (u * k).sum(-1) + (v * projected).sum(-1)
            assert_close(scores[:, :, i, j], 0.5 * terms)


def test_rotary_scores_depend_on_the_distance_alone():
    module, query, key = RotaryEncoding(8, 2), heads(2, 2, 3, 4, 1), heads(2, 2, 5, 4, 2)
    first, keys, bias = module(query, key, 0, 0.5)
    assert bias is None
    assert_close(first[:, :, 0], query[:, :, 0])  # position 0 is not turned
    assert_close(first.norm(dim=-1), query.norm(dim=-1), rtol=1e-6, atol=1e-6)
    shifted = torch.cat([heads(2, 2, 4, 4, 3), key], 2)
    later, longer, _ = module(query, shifted, 4, 0.5)
    assert_close(later @ longer[:, :, 4:].transpose(2, 3), first @ keys.transpose(2, 3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("number", "rates"),
    [
        (8, [2.0**-k for k in range(1, 9)]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),  # the four of 4 heads, then every second of 8
    ],
)
def test_alibi_is_press_et_als(number: int, rates: list[float]):
    module = AlibiEncoding(4 * number, number)
    assert module.rates == rates
    query = heads(1, number, 2, 4, 0)
    _, _, bias = module(query, heads(1, number, 5, 4, 1), 3, 1.0)
    for h, rate in enumerate(rates):
        assert_close(bias[0, h], -rate * torch.tensor([[3.0, 2, 1, 0, 1], [4, 3, 2, 1, 0]]).double())


def test_embedded_positions_have_the_models_type():
    for module in (NoPositions(), SinusoidalPositions(6)):
        assert module(torch.arange(4)).dtype == torch.float32
        assert module.to(torch.bfloat16)(torch.arange(4)).dtype == torch.bfloat16
    assert not NoPositions()(torch.arange(4)).any()
