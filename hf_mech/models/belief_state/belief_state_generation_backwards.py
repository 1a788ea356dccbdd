"""Theorem 2 as code: the continuation of a text, sampled backwards from its belief state alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.utils import ModelOutput

from .belief_state_errors import SearchError

#: Texts that an enumeration may hold.
ENUMERABLE = 1_000_000


@dataclass
class BeliefSamples(ModelOutput):
    """Continuations sampled from belief states.

    Args:
        sequences (`Tensor` of shape `[batch, length]`): the new tokens in reading order, padded on the right with the
            end token.
        lengths (`Tensor` of shape `[batch]`): how many they are.
        joined (`Tensor` of shape `[batch]`): whether the text is whole. False if the model had not said that prefix
            and suffix meet when there was no more room; the tokens are then the text's last ones.
        log_probs (`Tensor` of shape `[batch]`): the logarithm of each sample's probability.
    """

    sequences: Tensor | None = None
    lengths: Tensor | None = None
    joined: Tensor | None = None
    log_probs: Tensor | None = None


@torch.no_grad()
def sample_from_belief(
    model: Any,
    states: Tensor,  # [batch, hidden]
    max_new_tokens: int,
    *,
    stop_at_end: bool | None = None,
    generator: torch.Generator | None = None,
) -> BeliefSamples:
    """Samples x_T by T_p(. | f, B(empty suffix)), x_T-1 by T_p(. | f, B(x_T)), and so on (the proof of Theorem 2).

    Args:
        model: a `BeliefStateForCausalLM`.
        states: belief states f, F of a prefix's last token; the prefix itself is not read.
        max_new_tokens: T - t. With `stop_at_end` it is the most.
        stop_at_end: whether the end token, said before a suffix, means that the text is whole. Defaults to whether the
            model was trained on prefixes and suffixes that meet (`least_gap=1`); other models cannot say it.
        generator: of random numbers.

    Raises:
        SearchError: a model without T_p or B, or no room for tokens.
    """
    stop = _checked(model, max_new_tokens, stop_at_end)
    end, batch = model.config.end_token, len(states)
    cache = DynamicCache(config=model.model.backward_encoder.config)
    token = torch.full((batch, 1), end, device=states.device)
    lengths = torch.full((batch,), max_new_tokens, device=states.device)
    total = torch.zeros(batch, device=states.device, dtype=torch.float64)
    drawn: list[Tensor] = []
    for step in range(max_new_tokens + stop):
        said = _log_probabilities(model, states, _read(model, token, cache)[:, -1])
        token = torch.multinomial(said.exp(), 1, generator=generator)
        going = lengths == max_new_tokens
        total += said.gather(1, token)[:, 0].double() * going if step < max_new_tokens else 0
        if stop:
            lengths = torch.where(going & (token[:, 0] == end), step, lengths)
        drawn.append(token)
        if bool((lengths <= step).all()):
            break
    backwards = torch.cat(drawn, 1)
    joined = lengths < max_new_tokens
    if not stop:
        joined = torch.ones_like(joined)
    elif backwards.shape[1] > max_new_tokens:  # whether the text is whole when there is no more room
        last = backwards[:, max_new_tokens] == end
        total = torch.where(~joined & last, total + said.gather(1, token)[:, 0].double(), total)
        joined = joined | last
    places = lengths[:, None] - 1 - torch.arange(max_new_tokens, device=states.device)
    inside = places >= 0
    sequences = backwards.gather(1, places.clamp(0, backwards.shape[1] - 1)).where(inside, end)
    return BeliefSamples(sequences=sequences, lengths=lengths, joined=joined, log_probs=total)


@torch.no_grad()
def belief_distribution(
    model: Any,
    state: Tensor,  # [hidden]
    max_new_tokens: int,
    *,
    stop_at_end: bool | None = None,
) -> dict[tuple[int, ...], float]:
    """The exact distribution of [`sample_from_belief`], by enumeration of all texts.

    Returns:
        The probability of each whole text. With `stop_at_end` they sum to less than 1 if texts may be longer.

    Raises:
        SearchError: as there, or more than a million texts.
    """
    stop = _checked(model, max_new_tokens, stop_at_end)
    end, size = model.config.end_token, model.text_head.next.out_features
    if size**max_new_tokens > ENUMERABLE:
        raise SearchError(
            f"{size} tokens at {max_new_tokens} places make more than {ENUMERABLE} texts; sample them with "
            "sample_from_belief, or ask for fewer max_new_tokens."
        )
    found: dict[tuple[int, ...], float] = {}
    suffixes = torch.full((1, 0), 0, device=state.device)
    total = torch.zeros(1, device=state.device, dtype=torch.float64)
    for length in range(max_new_tokens + stop):
        backwards = torch.nn.functional.pad(suffixes.flip(1), (1, 0), value=end)
        said = _log_probabilities(model, state.expand(len(suffixes), -1), _read(model, backwards, None)[:, -1]).double()
        if stop:
            whole = (total + said[:, end]).tolist()
            found |= {tuple(text): math.exp(p) for text, p in zip(suffixes.tolist(), whole, strict=True)}
        if length == max_new_tokens:
            break
        tokens = torch.arange(size, device=state.device)
        tokens = tokens[tokens != end] if stop else tokens
        total = (total[:, None] + said[:, tokens]).flatten()
        before = tokens.repeat(len(suffixes))[:, None]
        suffixes = torch.cat([before, suffixes.repeat_interleave(len(tokens), 0)], 1)
    if not stop:
        found = {tuple(text): math.exp(p) for text, p in zip(suffixes.tolist(), total.tolist(), strict=True)}
    return found


def _checked(model: Any, max_new_tokens: int, stop_at_end: bool | None) -> bool:
    if model.model.backward_encoder is None or model.text_head.prev is None:
        raise SearchError(
            "Sampling from a belief state needs B and T_p; this model lacks one (use_backward=False or "
            "predict_previous=False)."
        )
    limit = model.model.learned_positions[-1]
    if max_new_tokens < 1 or (limit is not None and max_new_tokens >= limit):
        most = "" if limit is None else f" to {limit - 1}"
        raise SearchError(f"max_new_tokens must be from 1{most}, got {max_new_tokens}.")
    return model.config.least_gap == 1 if stop_at_end is None else stop_at_end


def _read(model: Any, tokens: Tensor, cache: DynamicCache | None) -> Tensor:
    """B of a text read from its end, after each of the tokens, [batch, length, hidden]."""
    embedded = model.model.embed_tokens(tokens)
    read = model.model.backward_encoder(inputs_embeds=embedded, past_key_values=cache, use_cache=cache is not None)
    return read.last_hidden_state


def _log_probabilities(model: Any, prefixes: Tensor, suffixes: Tensor) -> Tensor:
    r"""\log T_p(. | f, B), [batch, vocabulary]."""
    _, before = model.text_head(prefixes, suffixes)
    return (before.float() if before.element_size() < 4 else before).log_softmax(-1)
