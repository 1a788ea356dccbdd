"""`generate()` reads the suffix once, with and without a cache, and refuses what cannot work."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.models.belief_state.configuration_belief_state import BeliefStateError
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

from .generation_models import ENCODERS, END, model, tokens

HOW: dict[str, Any] = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": END}


def padded(rows: list[list[int]], left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of different lengths, and their mask."""
    longest = max(map(len, rows))
    space = [[END] * (longest - len(row)) for row in rows]
    ids = [s + row if left else row + s for s, row in zip(space, rows, strict=True)]
    mask = [
        [0] * len(s) + [1] * len(r) if left else [1] * len(r) + [0] * len(s) for s, r in zip(space, rows, strict=True)
    ]
    return torch.tensor(ids), torch.tensor(mask)


PREFIXES = [tokens(1, length, length)[0].tolist() for length in (3, 6, 4)]
SUFFIXES = [tokens(1, length, 10 + length)[0].tolist() for length in (4, 1, 6)]


class Calls:
    """Counts the calls of a module's forward."""

    def __init__(self, module: nn.Module) -> None:
        self.count = 0
        module.register_forward_hook(self)

    def __call__(self, *_: Any) -> None:
        self.count += 1


@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.parametrize(
    "more", [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}, {"use_cache": False}]
)
def test_a_call_reads_the_suffix_once(suffix: bool, more: dict[str, Any]):
    made, prefixes = model(), tokens(2, 5)
    backward, forward = (Calls(part) for part in (made.model.backward_encoder, made.model.forward_encoder))
    given = {"suffix_ids": tokens(2, 4, 1)} if suffix else {}
    for call in (1, 2):
        made.generate(prefixes, attention_mask=torch.ones_like(prefixes), **{**HOW, **given, **more})
        assert (backward.count, forward.count) == (call, 6 * call)


def test_decoding_reads_no_other_weights_than_a_forward_only_model():
    """With the empty suffix's state, the backward encoder and the head of the previous token can be deleted."""
    made, prefixes = model(), tokens(2, 5)
    state, how = made.suffix_state().expand(2, -1, -1), {"attention_mask": torch.ones(2, 5), **HOW}
    wanted = made.generate(prefixes, **how)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "backward_encoder" in name or "text_head.prev" in name:
                parameter.fill_(torch.nan)
    assert torch.equal(made.generate(prefixes, suffix_state=state, **how), wanted)


def test_the_state_belongs_to_the_weights_of_the_call():
    made, prefixes, how = model(), tokens(2, 5), {"attention_mask": torch.ones(2, 5), **HOW, "output_logits": True}
    first = made.generate(prefixes, return_dict_in_generate=True, **how).logits[0]
    made.model.backward_encoder.load_state_dict(model(seed=3).model.backward_encoder.state_dict())
    second = made.generate(prefixes, return_dict_in_generate=True, **how).logits[0]
    assert not torch.allclose(first, second)
    assert_close(second.double(), made(prefixes).logits[:, -1], rtol=1e-5, atol=1e-5)


WAYS: list[dict[str, Any]] = [{}, {"num_beams": 3, "num_return_sequences": 2}, {"cache_implementation": "static"}]
QUICK = [("gpt2", True, 0), ("gpt2", False, 1), ("llama", True, 1), ("llama", False, 2), ("qwen3", True, 2)]


@pytest.mark.parametrize(
    ("kind", "suffix", "more"),
    [
        pytest.param(kind, suffix, more, marks=[] if (kind, suffix, number) in QUICK else pytest.mark.slow)
        for kind, suffix, (number, more) in itertools.product(ENCODERS, (False, True), enumerate(WAYS))
    ],
)
def test_cached_padded_batches_are_uncached_rows_alone(kind: str, suffix: bool, more: dict[str, Any]):
    """Prefixes and suffixes of different lengths, padded: each row is as without a cache and without padding."""
    made = model(kind)
    prefixes, mask = padded(PREFIXES, left=True)
    copies = more.get("num_return_sequences", 1)
    compiled = {"disable_compile": True} if "cache_implementation" in more else {}
    plain = {key: value for key, value in more.items() if key != "cache_implementation"}
    for left in (False, True):
        suffixes, suffix_mask = padded(SUFFIXES, left)
        given = {"suffix_ids": suffixes, "suffix_attention_mask": suffix_mask} if suffix else {}
        said = made.generate(prefixes, attention_mask=mask, **HOW, **given, **more, **compiled)
        for row, prefix in enumerate(PREFIXES):
            alone = {"suffix_ids": torch.tensor([SUFFIXES[row]])} if suffix else {}
            one = torch.tensor([prefix])
            wanted = made.generate(one, attention_mask=torch.ones_like(one), use_cache=False, **HOW, **alone, **plain)
            found = said[copies * row : copies * (row + 1), prefixes.shape[1] :]
            assert torch.equal(found, wanted[:, len(prefix) :])


@pytest.mark.parametrize("kind", ENCODERS)
def test_generation_is_forward_with_the_suffix(kind: str):
    made, prefixes, suffixes = model(kind), tokens(3, 4), tokens(3, 5, 1)
    how = {**HOW, "attention_mask": torch.ones_like(prefixes), "return_dict_in_generate": True, "output_logits": True}
    said = made.generate(prefixes, suffix_ids=suffixes, **how)
    logits = made(said.sequences, suffix_ids=suffixes).logits[:, 3:-1]
    assert_close(torch.stack(said.logits, 1).double(), logits, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(made(said.sequences).logits[:, 3:-1], logits)


@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.parametrize("more", [{}, {"use_cache": False}, {"num_beams": 3}])
def test_generation_from_embeddings_is_generation_from_ids(suffix: bool, more: dict[str, Any]):
    made = model()
    prefixes, mask = padded(PREFIXES, left=True)
    how = {**HOW, "attention_mask": mask, **({"suffix_ids": tokens(3, 4, 1)} if suffix else {}), **more}
    embeds = made.get_input_embeddings()(prefixes)
    wanted = made.generate(prefixes, **how)[:, prefixes.shape[1] :]
    assert torch.equal(made.generate(inputs_embeds=embeds, **how), wanted)


def test_forward_takes_a_state_in_place_of_the_suffix():
    made, prefixes, suffixes = model(), tokens(3, 4), tokens(3, 5, 1)
    state = made.suffix_state(suffixes)
    assert state.shape == (3, 1, made.config.hidden_size)
    assert_close(made(prefixes, suffix_state=state).logits, made(prefixes, suffix_ids=suffixes).logits)
    assert_close(made(prefixes, suffix_state=made.suffix_state()).logits, made(prefixes).logits)


def test_prompt_lookup_decoding_is_greedy_decoding():
    made = model()
    prefix = torch.tensor([[1, 2, 3, 1, 2, 3, 1]])
    how = {**HOW, "attention_mask": torch.ones_like(prefix), "suffix_ids": tokens(1, 4, 1)}
    assert torch.equal(made.generate(prefix, prompt_lookup_num_tokens=2, **how), made.generate(prefix, **how))


@pytest.mark.parametrize("name", ["assistant_model", "dola_layers", "penalty_alpha"])
def test_refuses_decodings_that_cannot_work_by_name(name: str):
    value = {"dola_layers": "high", "penalty_alpha": 0.6}.get(name)
    value = GPT2LMHeadModel(GPT2Config(vocab_size=12, n_layer=1, n_embd=8, n_head=1)) if value is None else value
    with pytest.raises(BeliefStateError, match=name):
        model().generate(tokens(1, 3), **{name: value})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"suffix_ids": torch.zeros(2, 0, dtype=torch.long)}, "A suffix has no token"),
        ({"suffix_ids": tokens(2, 3), "suffix_attention_mask": torch.tensor([[1, 1, 1], [0, 0, 0]])}, "has no token"),
        ({"suffix_ids": tokens(2, 3), "suffix_attention_mask": torch.ones(2, 2)}, r"must be \[2, 3\], got \[2, 2\]"),
        ({"suffix_ids": tokens(1, 3)[0]}, r"must be \[batch, suffix length\], got \[3\]"),
        ({"suffix_ids": tokens(3, 3)}, "2 prefixes, 3 suffixes"),
        ({"suffix_ids": tokens(2, 48)}, "reads 48 tokens with the end token, got 48"),
        ({"suffix_ids": tokens(2, 3), "suffix_state": torch.zeros(2, 1, 16)}, "not both"),
    ],
)
def test_refuses_suffixes_that_do_not_fit(given: dict[str, Any], text: str):
    with pytest.raises(BeliefStateError, match=text):
        model().generate(tokens(2, 4), **HOW, **given)


def test_refuses_a_suffix_without_a_backward_encoder():
    made = model(use_backward=False)
    assert made.suffix_state() is None
    with pytest.raises(BeliefStateError, match="use_backward=False"):
        made.generate(tokens(2, 4), suffix_ids=tokens(2, 3), **HOW)
    assert made.generate(tokens(2, 4), **HOW).shape == (2, 10)


def test_refuses_an_empty_prefix():
    for given in (
        {"inputs": tokens(2, 0)},
        {"inputs": tokens(2, 3), "attention_mask": torch.tensor([[1] * 3, [0] * 3])},
    ):
        with pytest.raises(BeliefStateError, match="A prefix needs a token"):
            model().generate(**given, **HOW)


def test_refuses_a_search_from_embeddings():
    with pytest.raises(BeliefStateError, match="cannot be combined with inputs_embeds"):
        model().generate(inputs_embeds=torch.zeros(1, 3, 16), num_rollouts=2, **HOW)


def test_misspelt_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="sufix_ids"):
        model().generate(tokens(2, 4), sufix_ids=tokens(2, 3), **HOW)
    with pytest.raises(BeliefStateError, match="score_with"):
        model().generate(tokens(2, 4), score_with="next", **HOW)


def test_the_class_can_generate():
    assert BeliefStateForCausalLM.can_generate()


def test_encoders_without_learned_positions_read_texts_of_any_length():
    made = model("llama")
    goal = tokens(1, made.config.n_positions + 5)
    for how in ({}, {"num_rollouts": 2}):
        assert made.generate(tokens(1, 4), suffix_ids=goal, **HOW, **how).shape[1] <= 10
