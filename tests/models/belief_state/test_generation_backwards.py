"""Theorem 2: the continuation sampled backwards from the state alone is that of forward sampling."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache
from typing import Any

import pytest
import torch
from transformers import GPT2Config

from hf_mech.models.belief_state.belief_state_generation import belief_distribution, sample_from_belief
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig, BeliefStateError
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

from .generation_models import model, tokens

SYMBOLS, STOP = 3, 3
Texts = dict[tuple[int, ...], float]


def fixed_texts() -> list[list[int]]:
    """The distribution is that of a text drawn from this list: a first symbol, and three that depend on it."""
    generator = torch.Generator().manual_seed(0)
    ends = list(itertools.product(range(SYMBOLS), repeat=3))
    return [
        [first, *ends[int(place)]]
        for first in range(2)
        for place in torch.multinomial(torch.rand(len(ends), generator=generator) ** 4, 16, True, generator=generator)
    ]


def texts_of_different_lengths() -> list[list[int]]:
    return [text[: 1 + number % 4] for number, text in enumerate(fixed_texts())]


@cache
@torch.enable_grad()
def trained(gap: int, steps: int = 300, **options: Any) -> BeliefStateForCausalLM:
    """A model as near to the ideal one of Eq. 3 and 4 as some seconds of training on the whole distribution get it."""
    torch.manual_seed(0)
    special = {"eos_token_id": STOP, "bos_token_id": None, "pad_token_id": None}
    sizes = {"vocab_size": SYMBOLS + 1, "n_positions": 8, "n_embd": 32, "n_layer": 1, "n_head": 2}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    encoder = GPT2Config(**sizes, **special, **dropout)
    config = BeliefStateConfig(encoder_config=encoder, head_width=64, least_gap=gap, **special, **options)
    made = BeliefStateForCausalLM(config)
    rows = fixed_texts() if gap == 2 else texts_of_different_lengths()
    longest = max(map(len, rows)) + 1
    mask = torch.tensor([[1] * (len(row) + 1) + [0] * (longest - len(row) - 1) for row in rows])
    ids = torch.tensor([row + [STOP] * (longest - len(row)) for row in rows])
    optimizer = torch.optim.AdamW(made.parameters(), lr=5e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        made(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss.backward()
        optimizer.step()
        schedule.step()
    return made.eval().double()


def forward_distribution(made: BeliefStateForCausalLM, prefix: list[int], most: int, stop: bool) -> Texts:
    """The continuations of forward sampling by T_n with the empty suffix, by enumeration."""
    found: Texts = {}
    open_: Texts = {(): 1.0}
    for length in range(most + stop):
        grown: Texts = {}
        for text, probability in open_.items():
            said = made(torch.tensor([[*prefix, *text]])).logits[0, -1].softmax(-1).tolist()
            if stop:
                found[text] = probability * said[STOP]
            if length < most:
                grown |= {(*text, x): probability * p for x, p in enumerate(said) if not stop or x != STOP}
        open_ = grown
    return found if stop else open_


def distance(first: Texts, second: Texts) -> float:
    """Total variation."""
    return sum(abs(first.get(text, 0) - second.get(text, 0)) for text in first.keys() | second.keys()) / 2


def continuations(texts: list[list[int]], first: int) -> Texts:
    """The distribution of the rest of a text that begins with `first`."""
    ends = [tuple(text[1:]) for text in texts if text[0] == first]
    return {end: count / len(ends) for end, count in Counter(ends).items()}


def state(made: BeliefStateForCausalLM, prefix: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return made.model(torch.tensor([prefix])).last_hidden_state[0, -1]


@pytest.mark.parametrize("first", [0, 1])
@torch.no_grad()
def test_backwards_from_the_state_is_the_distribution(first: int):
    made, wanted = trained(2, steps=160), continuations(fixed_texts(), first)
    backwards = belief_distribution(made, state(made, [first]), 3)
    assert sum(backwards.values()) == pytest.approx(1)
    assert distance(backwards, wanted) < 0.02
    assert distance(backwards, forward_distribution(made, [first], 3, stop=False)) < 0.06  # T_n learns more slowly
    assert distance(backwards, belief_distribution(made, state(made, [1 - first]), 3)) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
@torch.no_grad()
def test_texts_of_different_lengths_end_where_prefix_and_suffix_meet(first: int):
    """Both directions are the data's, for a pair's weight depends on nothing but its prefix and its suffix."""
    made, wanted = trained(1), continuations(texts_of_different_lengths(), first)
    backwards = belief_distribution(made, state(made, [first]), 3)
    assert len({len(text) for text, p in backwards.items() if p > 0.01}) > 2
    assert distance(backwards, wanted) < 0.01
    assert distance(forward_distribution(made, [first], 3, stop=True), wanted) < 0.01


@pytest.mark.slow
@torch.no_grad()
def test_a_mean_over_each_sequence_tilts_towards_short_texts():
    made, wanted = trained(1, pair_weights="sequence"), continuations(texts_of_different_lengths(), 0)
    found = forward_distribution(made, [0], 3, stop=True)
    assert distance(found, wanted) > 0.1
    assert distance(found, belief_distribution(made, state(made, [0]), 3)) < 0.02  # both directions alike
    assert sum(len(text) * (found[text] - wanted.get(text, 0)) for text in found) < -0.1  # tokens a text


@torch.no_grad()
def test_an_untrained_model_has_two_distributions():
    made = model(seed=2)
    prefix = tokens(1, 3)[0].tolist()
    backwards = belief_distribution(made, state(made, prefix), 2)
    assert distance(backwards, forward_distribution(made, prefix, 2, stop=False)) > 0.2


@pytest.mark.parametrize("gap", [1, 2])
def test_samples_are_of_that_distribution(gap: int):
    """Drawn with a cache, several states at once; log_probs are those of the enumeration."""
    made, count = trained(gap, steps=160 if gap == 2 else 20), 3000
    states = torch.stack([state(made, [first]) for first in (0, 1)]).repeat_interleave(count, 0)
    drawn = made.sample_from_belief(states, 3, generator=torch.Generator().manual_seed(0))
    for first in (0, 1):
        wanted = belief_distribution(made, state(made, [first]), 3)
        rows = range(first * count, (first + 1) * count)
        found = [tuple(drawn.sequences[row, : drawn.lengths[row]].tolist()) for row in rows if drawn.joined[row]]
        assert distance({text: n / count for text, n in Counter(found).items()}, wanted) < 0.05
        chosen = [row for row in rows if drawn.joined[row]]
        exact = torch.tensor([wanted[text] for text in found], dtype=torch.float64)
        torch.testing.assert_close(drawn.log_probs[chosen].exp(), exact)


def test_a_text_without_room_is_not_joined():
    made = trained(1, steps=20)
    drawn = made.sample_from_belief(state(made, [0]).expand(500, -1), 1, generator=torch.Generator().manual_seed(0))
    assert 0 < int(drawn.joined.sum()) < 500
    assert set(drawn.lengths.tolist()) == {0, 1}


def test_refuses():
    with pytest.raises(BeliefStateError, match="needs B and T_p"):
        model(use_backward=False).sample_from_belief(torch.zeros(1, 16), 3)
    with pytest.raises(BeliefStateError, match="from 1 to 47, got 0"):
        sample_from_belief(model(), torch.zeros(1, 16), 0)
    with pytest.raises(BeliefStateError, match="12 tokens at 9 places"):
        belief_distribution(model(), torch.zeros(16), 9)
