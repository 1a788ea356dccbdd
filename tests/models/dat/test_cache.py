"""The cache: rows picked and repeated, tokens forgotten, and the ways of generating that rely on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache

from hf_mech.models.dat import DATCache, DATError, DATForCausalLM, dat_row_machine
from hf_mech.programs.psl import compile_program

COUNTDOWN = """
registers: {symbol: 's', position: 'p', place: 'q', said: 'x', last: 'z'}
system: {symbol: symbol, position: position, output: said, eop: last}
constants: {}
stop: ["."]
where last[N] == "EOP":  # the last cell of all: begin with the first word
    place[N] = 0
where last[N] == "EOP":
    last[N] = "no"
repeat:
    where position[n] == place[N]@pos_increment and said[N] != symbol[n]:
        said[N] = symbol[n]
until NO_CHANGE
where position[n] == place[N]@pos_increment:
    place[N] = position[n]
"""
"""Says the prompt again, word for word, up to a full stop."""


@pytest.fixture(scope="module", params=["gather", "gather on tensors", "dense", "relaxed"])
def compiled(request: pytest.FixtureRequest) -> Iterator[tuple[DATForCausalLM, Any]]:
    backend, _, many = request.param.partition(" ")
    with pytest.MonkeyPatch.context() as patch:
        if many:
            patch.setattr(dat_row_machine, "FEW_CELLS", 0)
        yield compile_program(
            COUNTDOWN, max_position_embeddings=20, num_open_values=9, backend=backend, relaxation_temperature=0.05
        )


PROMPTS = ["a b c . d", "e .", "c b a b e d ."]


def batch(tokenizer: Any, prompts: list[str]) -> dict[str, Tensor]:
    return dict(tokenizer(prompts, padding=True, return_tensors="pt"))


def said(tokenizer: Any, prompts: dict[str, Tensor], generated: Tensor) -> list[str]:
    return tokenizer.batch_decode(generated[:, prompts["input_ids"].shape[1] :], skip_special_tokens=True)


def states(model: DATForCausalLM, words: Tensor, cache: DATCache) -> Tensor:
    return model.dat(words, past_key_values=cache).last_hidden_state


def test_stop_strings(compiled: tuple[DATForCausalLM, Any]):
    """transformers hands the tokenizer on to the model."""
    model, tokenizer = compiled
    prompts = batch(tokenizer, ["a b c . d"])
    generated = model.generate(**prompts, max_new_tokens=6, stop_strings=["b"], tokenizer=tokenizer)
    assert said(tokenizer, prompts, generated) == ["a b"]


def begun(model: DATForCausalLM, tokenizer: Any, prompts: list[str], words: Tensor | None = None) -> DATCache:
    cache = model.dat(**batch(tokenizer, prompts), use_cache=True).past_key_values
    if words is not None:
        model.dat(words, past_key_values=cache)
    return cache


# ------------------------------------------------------------------------------------------------------- generation


def test_rows_stop_at_different_times(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    prompts = batch(tokenizer, PROMPTS)
    generated = model.generate(**prompts, max_new_tokens=10)
    assert said(tokenizer, prompts, generated) == ["a b c", "e", "c b a b e d"]
    for row, prompt in enumerate(PROMPTS):
        alone = batch(tokenizer, [prompt])
        assert said(tokenizer, alone, model.generate(**alone, max_new_tokens=10)) == [
            said(tokenizer, prompts, generated)[row]
        ]


@pytest.mark.parametrize(
    "how",
    [
        {"use_cache": False},
        {"do_sample": True},
        {"num_beams": 3},
        {"num_beams": 2, "do_sample": True},
        {"num_return_sequences": 2, "do_sample": True},
        {"max_length": 30, "max_new_tokens": None},
    ],
    ids=str,
)
def test_every_way_of_generating_says_the_same(compiled: tuple[DATForCausalLM, Any], how: dict[str, Any]) -> None:
    """The program leaves no choice: what it says has all the weight there is."""
    model, tokenizer = compiled
    prompts = batch(tokenizer, PROMPTS)
    generated = model.generate(**prompts, **{"max_new_tokens": 8, **how})
    times = how.get("num_return_sequences", 1)
    expected = [text for text in ("a b c", "e", "c b a b e d") for _ in range(times)]
    assert said(tokenizer, prompts, generated) == expected


def test_max_new_tokens_and_words_handed_back(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    prompts = batch(tokenizer, PROMPTS)
    made = model.generate(**prompts, max_new_tokens=2, return_dict_in_generate=True, output_logits=True)
    assert said(tokenizer, prompts, made.sequences) == ["a b", "e", "c b"]
    assert type(made.past_key_values) is DATCache
    assert made.logits[0].shape == (3, model.config.vocab_size)


def test_prompt_lookup_forgets_what_was_guessed_wrong(compiled: tuple[DATForCausalLM, Any]) -> None:
    """Assisted generation reads several words at once and crops the cache where they were not the program's."""
    model, tokenizer = compiled
    for prompt in ("c a b a c a a b .", "a b a d a b a e ."):
        prompts = batch(tokenizer, [prompt])
        assert said(tokenizer, prompts, model.generate(**prompts, max_new_tokens=9, prompt_lookup_num_tokens=3)) == [
            prompt.removesuffix(" .")
        ]


# ---------------------------------------------------------------------------------------------------------- the cache


def test_cropped_words_are_forgotten(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    a, b, e = tokenizer.convert_tokens_to_ids(["a", "b", "e"])
    words, others = torch.tensor([[a, b], [e, b]]), torch.tensor([[b, a], [a, e]])
    cache = begun(model, tokenizer, PROMPTS[:2], words)
    length = cache.get_seq_length()
    cache.crop(0)
    assert cache.get_seq_length() == length
    cache.crop(-2)
    assert cache.get_seq_length() == length - 2
    assert torch.equal(states(model, others, cache), states(model, others, begun(model, tokenizer, PROMPTS[:2])))


@pytest.mark.parametrize("number", [1, -3])
def test_crop_keeps_the_prompt(compiled: tuple[DATForCausalLM, Any], number: int) -> None:
    model, tokenizer = compiled
    cache = begun(model, tokenizer, ["a b"], tokenizer("a b", add_special_tokens=False, return_tensors="pt").input_ids)
    with pytest.raises(DATError, match="between -2"):
        cache.crop(number)
    with pytest.raises(DATError, match="between 0"):
        DATCache().crop(-1)


def test_rows_are_picked_repeated_and_put_in_order(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    a, b, e = tokenizer.convert_tokens_to_ids(["a", "b", "e"])
    first, words = torch.tensor([[a], [e], [b]]), torch.tensor([[b, a], [a, e], [e, e]])
    expected = states(model, words, begun(model, tokenizer, PROMPTS, first))
    for change, rows in (
        (lambda cache: cache.reorder_cache(torch.tensor([2, 0, 0])), [2, 0, 0]),
        (lambda cache: cache.batch_select_indices(torch.tensor([1])), [1]),
        (lambda cache: cache.batch_repeat_interleave(2), [0, 0, 1, 1, 2, 2]),
    ):
        cache = begun(model, tokenizer, PROMPTS, first)
        change(cache)
        assert torch.equal(states(model, words[rows], cache), expected[rows])


def test_reset_and_length(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    cache = begun(model, tokenizer, ["a b"])
    assert (cache.get_seq_length(), cache.is_initialized) == (3, True)
    assert cache.get_max_length() == cache.get_max_length(0) == cache.get_max_cache_shape() == -1
    cache.reset()
    assert (cache.get_seq_length(), cache.is_initialized, cache.memory()) == (0, False, 0)
    prompt = batch(tokenizer, ["b a ."])
    again = model.dat(**prompt, past_key_values=cache).last_hidden_state
    assert torch.equal(again, model.dat(**prompt).last_hidden_state)


@pytest.mark.parametrize("few", [512, 0], ids=["by row", "on tensors"])
def test_memory_counts_every_register_once(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dat_row_machine, "FEW_CELLS", few)
    model, tokenizer = compile_program(COUNTDOWN, max_position_embeddings=20, num_open_values=9)
    cache = begun(model, tokenizer, ["a b c d"])
    before = cache.memory()
    model.dat(tokenizer("a b", add_special_tokens=False, return_tensors="pt").input_ids, past_key_values=cache)
    assert 0 < before < cache.memory()
    # four cells, five registers of four bytes, at most once for each layer of each repetition, and little beside
    assert before < 4 * 5 * 4 * 12 + 500


def test_a_cache_of_another_kind() -> None:
    model, tokenizer = compile_program(COUNTDOWN, max_position_embeddings=20, num_open_values=9)
    prompts = batch(tokenizer, ["a b"])
    for call in (model, model.dat, partial(model.generate, max_new_tokens=2)):
        with pytest.raises(DATError, match="must be a DATCache, got DynamicCache"):
            call(**prompts, past_key_values=DynamicCache())
