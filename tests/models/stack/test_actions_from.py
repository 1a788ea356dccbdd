"""Actions from the layer's input: what they depend on, and that caches keep up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache, StaticCache

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaForMaskedLM

from .contract import gpt2, inputs, roberta


def model(**options: Any) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM(gpt2(stack_actions_from="layer_input", **options)).eval().double()


@pytest.mark.parametrize("origin", ["hidden", "layer_input"])
@pytest.mark.parametrize("ours", [StackGPT2ForCausalLM, StackRobertaForMaskedLM])
def test_the_first_actions_depend_on_the_token_alone_if_asked_for(ours: type, origin: str):
    config = gpt2 if ours is StackGPT2ForCausalLM else roberta
    new = ours(config(stack_actions_from=origin, position_embedding_type="none", stack_values="recurrent")).eval()
    ids = inputs(3, 9, 0)["input_ids"]
    other = ids.clone()
    other[:, 5:] = ids[:, 5:].roll(1, 0)  # what follows is another row's
    other[:, 1:3] = ids[:, 1:3].roll(1, 0)
    before, after = (new(given, output_stack_attentions=True).stack_actions for given in (ids, other))
    same = torch.allclose(before[0][:, 3:5], after[0][:, 3:5], atol=1e-6)
    assert same == (origin == "layer_input")
    assert not torch.allclose(before[1][:, 3:5], after[1][:, 3:5], atol=1e-6)  # deeper layers have mixed the tokens


def test_the_values_still_take_what_the_layer_returns():
    ours, batch = model(stack_values="recurrent"), inputs(3, 9, 0)
    taken: list[torch.Tensor] = []
    stack = ours.transformer.h[0].stack
    stack.register_forward_pre_hook(lambda _module, given: taken.extend(given[:2]))
    stack.values.register_forward_pre_hook(lambda _module, given: taken.append(given[0]))
    ours(**batch)
    returned, layer_input, of_values = taken
    assert_close(of_values, returned)
    assert not torch.allclose(of_values, layer_input)


@pytest.mark.parametrize("kind", ["dynamic", "static", "few levels"])
@pytest.mark.parametrize("held", ["hidden", "recurrent"])
def test_chunks_are_the_whole(kind: str, held: str):
    ours, batch = model(stack_values=held, stack_tolerance=1e-9 if kind == "few levels" else 0.0), inputs(3, 12, 0)
    cache = StaticCache(config=ours.config, max_cache_len=16) if kind == "static" else DynamicCache()
    with torch.no_grad():
        parts = [ours(part, past_key_values=cache).logits for part in batch["input_ids"].split([4, 1, 1, 3, 3], 1)]
        assert_close(torch.cat(parts, 1), ours(**batch).logits)


def test_another_origin_is_refused():
    with pytest.raises(StackError, match="stack_actions_from"):
        gpt2(stack_actions_from="embeddings")
