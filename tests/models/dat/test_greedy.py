"""Greedy generation without logits says what transformers' own says, and leaves every other case to it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, TextStreamer

from hf_mech.models.dat import DATCache, DATForCausalLM, DATRepeatError, dat_generation
from hf_mech.programs.psl import compile_program, program_text

PROMPTS = ["Q a b A b . Q c b A", "Q a x b A b x a Q c d x e A", "Q a A a . Q b A"]


@pytest.fixture
def pargen() -> tuple[DATForCausalLM, Any]:
    return compile_program(program_text("pargen"), max_position_embeddings=48, num_open_values=12)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths asked for without logits."""
    lengths: list[int] = []
    say = dat_generation.GreedyWords._say

    def noted(self: Any, input_ids: Any, longest: int, kwargs: Any) -> Any:
        lengths.append(longest)
        return say(self, input_ids, longest, kwargs)

    monkeypatch.setattr(dat_generation.GreedyWords, "_say", noted)
    return lengths


@pytest.mark.parametrize(
    ("options", "side"),
    [
        ({"max_new_tokens": 12}, "left"),
        ({"max_new_tokens": 2}, "right"),
        ({"max_new_tokens": 1}, "left"),
        ({"max_length": 16}, "right"),
    ],
    ids=str,
)
def test_the_same_words(pargen: Any, said: list[int], options: dict[str, int], side: str) -> None:
    model, tokenizer = pargen
    tokenizer.padding_side = side
    for texts in (PROMPTS, PROMPTS[1:2]):
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        plain = model.generate(**batch, **options)
        assert len(said) == 1
        said.clear()
        expected = model.generate(**batch, **options, return_dict_in_generate=True).sequences
        assert not said
        assert torch.equal(plain, expected)


def test_registers_of_the_prompt_and_a_given_cache(said: list[int]) -> None:
    program = (
        "registers: {symbol: 's', position: 'p', mark: 'm'}\nprompt: [mark]\n"
        "system: {symbol: symbol, position: position, output: symbol}\n"
        "where position[n] == mark[N]:\n    symbol[N] = symbol[n]\n    mark[N] = mark[n]\n"
    )
    model, tokenizer = compile_program(program, max_position_embeddings=9, num_open_values=4)
    batch = tokenizer("a b c", registers={"mark": ["2", None, "1"]}, return_tensors="pt")
    cache = DATCache()
    plain = model.generate(**batch, max_new_tokens=3, past_key_values=cache)
    assert (len(said), cache.get_seq_length()) == (1, 6)
    expected = model.generate(**batch, max_new_tokens=3, return_dict_in_generate=True)
    assert torch.equal(plain, expected.sequences)
    assert torch.equal(cache.keys, expected.past_key_values.keys)
    more = {"attention_mask": torch.ones_like(plain), "past_key_values": cache, "max_new_tokens": 1}
    assert model.generate(plain, **more).shape == (1, 8)  # a cache that has read goes on in transformers
    assert len(said) == 1


class Likes(LogitsProcessor):
    """Wants one word."""

    def __init__(self, word: int):
        self.word = word

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.full_like(scores, 0.0).index_fill(1, torch.tensor([self.word]), 1.0)


def test_whoever_chooses_or_looks_on_gets_the_logits(pargen: Any, said: list[int], capsys: Any) -> None:
    model, tokenizer = pargen
    batch = tokenizer(PROMPTS[0], return_tensors="pt")
    x = tokenizer.convert_tokens_to_ids("x")
    assert model.generate(**batch, max_new_tokens=3, logits_processor=[Likes(x)])[0, -3:].tolist() == [x] * 3
    assert model.generate(**batch, max_new_tokens=3, eos_token_id=x).shape[1] == batch["input_ids"].shape[1] + 3
    model.generate(
        **batch, max_new_tokens=3, streamer=TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    )
    assert capsys.readouterr().out.split() == ["b", "."]
    said.clear()
    calls: list[int] = []
    handle = model.register_forward_hook(lambda *arguments: calls.append(1))
    model.generate(**batch, max_new_tokens=2)
    handle.remove()
    model.config.backend = "dense"
    model.generate(**batch, max_new_tokens=2)
    assert (len(calls), said) == (2, [])


def test_errors_are_the_same(pargen: Any, said: list[int]) -> None:
    endless = (
        "registers: {symbol: 's', position: 'p', mark: 'm'}\n"
        "system: {symbol: symbol, position: position, output: symbol}\n"
        'repeat 3:\n    where symbol[N] == "x":\n        mark[N] = "x"\nuntil symbol[n] == "y"\n'
    )
    model, tokenizer = compile_program(endless, max_position_embeddings=9, num_open_values=4)
    for options in ({}, {"return_dict_in_generate": True}):
        with pytest.raises(DATRepeatError):
            model.generate(**tokenizer("a b", return_tensors="pt"), max_new_tokens=2, **options)
