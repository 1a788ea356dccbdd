"""The stack before a layer's other sub-layers: what a layer then computes, and that caches keep up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache, StaticCache

from hf_mech.models.stack import StackGPT2ForCausalLM, StackGPT2Model, StackRobertaModel
from hf_mech.models.stack.stack_errors import StackCacheError

from .contract import gpt2, inputs, roberta

HELD = ["hidden", "recurrent"]


def model(**options: Any) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM(gpt2(stack_first=True, **options)).eval().double()


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize(("ours", "config"), [(StackGPT2Model, gpt2), (StackRobertaModel, roberta)])
def test_the_other_sub_layers_take_what_the_stack_returns(ours: type, config: Callable[..., Any], held: str):
    options = {"position_embedding_type": "none"}
    configs = config(stack_first=True, stack_values=held, **options), config(use_stack=False, **options)
    for one_layer in configs:
        one_layer.num_hidden_layers = 1
    with_stack, without = (ours(one_layer).eval() for one_layer in configs)
    without.load_state_dict(with_stack.state_dict(), strict=False)
    layers = with_stack.h if ours is StackGPT2Model else with_stack.encoder.layer
    seen: list[torch.Tensor] = []
    layers[0].stack.register_forward_hook(lambda _module, _given, returned: seen.append(returned))
    expected = with_stack(**inputs(3, 9, 0)).last_hidden_state
    first = without.h[0] if ours is StackGPT2Model else without.encoder.layer[0]
    first.register_forward_pre_hook(lambda _module, given: (seen[0], *given[1:]))
    assert_close(without(**inputs(3, 9, 0)).last_hidden_state, expected)


def test_the_first_actions_depend_on_the_token_alone():
    ours = model(position_embedding_type="none")
    ids = inputs(3, 9, 0)["input_ids"]
    order = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(8)])
    before, after = (ours(given, output_stack_attentions=True).stack_actions for given in (ids, ids[:, order]))
    assert_close(before[0][:, order], after[0])
    assert not torch.allclose(before[1][:, order], after[1])


@pytest.mark.parametrize("chunks", [[12], [1] * 12, [5, 7], [4, 1, 1, 3, 3]])
@pytest.mark.parametrize("kind", ["dynamic", "static", "sparse"])
@pytest.mark.parametrize("held", HELD)
def test_chunks_are_the_whole(chunks: list[int], kind: str, held: str):
    ours, batch = model(stack_values=held, stack_tolerance=1e-9 if kind == "sparse" else 0.0), inputs(3, 12, 0)
    cache = StaticCache(config=ours.config, max_cache_len=16) if kind == "static" else DynamicCache()
    with torch.no_grad():
        parts = [ours(part, past_key_values=cache).logits for part in batch["input_ids"].split(chunks, 1)]
        assert_close(torch.cat(parts, 1), ours(**batch).logits)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"cache_implementation": "static"}])
def test_generation_with_a_cache_is_that_without(options: dict[str, Any]):
    ours, batch = model(stack_values="recurrent"), inputs(3, 6, 0)
    lengths = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 1}
    beams = {"num_beams": options.get("num_beams", 1)}
    without = ours.generate(**batch, **lengths, **beams, use_cache=False)
    assert ours.generate(**batch, **lengths, **options).tolist() == without.tolist()


def test_a_cache_from_a_model_without_a_stack_is_refused():
    ours, batch = model(), inputs(3, 6, 0)
    stock = StackGPT2ForCausalLM(gpt2(use_stack=False)).eval()
    cache = stock(**batch, use_cache=True).past_key_values
    with pytest.raises(StackCacheError, match="keys of 6 positions and no stack: 0 of them are new"):
        ours(batch["input_ids"][:, :1], past_key_values=cache)
