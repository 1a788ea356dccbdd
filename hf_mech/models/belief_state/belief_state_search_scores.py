"""Scores of whole continuations by the text head (Eq. 7 and 8), many continuations at once."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .belief_state_errors import PrefixError, SearchError


@dataclass
class Prompt:
    """A prefix and its goal, read once for all rollouts.

    Attributes:
        prefix: x_1:t, [t].
        goal: x_t+k:T without the end token, [goal length]; of length 0 for the empty suffix.
        states: F after every token of the prefix, [1, t, hidden].
        cache: the forward encoder's keys and values of the prefix.
        suffix_state: B of the goal, [1, 1, hidden]; None without a backward encoder.
    """

    prefix: Tensor
    goal: Tensor
    states: Tensor
    cache: Any
    suffix_state: Tensor | None

    @classmethod
    def read(cls, model: Any, prefix: Tensor, goal: Tensor, suffix_state: Tensor | None, horizon: int) -> Prompt:
        """Reads the prefix.

        Raises:
            PrefixError: the whole text is longer than the forward encoder reads.
        """
        limit = model.model.learned_positions[0]
        if limit is not None and len(prefix) + horizon + len(goal) > limit:
            raise PrefixError(
                f"The forward encoder reads {limit} tokens, got {len(prefix)} of the prefix, {horizon} new ones and "
                f"{len(goal)} of the goal; shorten one of them."
            )
        read = model.model(prefix[None], use_cache=True)
        return cls(prefix, goal, read.last_hidden_state, read.past_key_values, suffix_state)

    def caches(self, copies: int) -> Any:
        """The prefix's keys and values for so many continuations."""
        cache = copy.deepcopy(self.cache)
        cache.batch_repeat_interleave(copies)
        return cache


@dataclass
class Score:
    """How continuations are scored.

    Attributes:
        head: `"next"` for T_n, `"previous"` for T_p.
        tokens: the number of the text's last tokens whose probabilities are multiplied.
    """

    head: str
    tokens: int

    @classmethod
    def of(cls, model: Any, goal: Tensor, head: str | None, tokens: int | None, horizon: int) -> Score:
        """Eq. 7 for a goal, Eq. 8 for the empty suffix, as far as nothing else is asked for.

        Raises:
            SearchError: an unknown head, one that the model lacks, or fewer than one token.
        """
        head = ("next" if len(goal) else "previous") if head is None else head
        if head not in ("next", "previous"):
            raise SearchError(f"score_with must be 'next' or 'previous', got {head!r}.")
        if head == "previous" and model.text_head.prev is None:
            raise SearchError("The model has no T_p (predict_previous=False); score with score_with='next'.")
        if len(goal) and tokens is not None:
            raise SearchError("With a goal, the goal's tokens are scored; leave score_tokens out.")
        tokens = len(goal) or (horizon if tokens is None else tokens)
        if tokens < 1:
            raise SearchError(f"score_tokens must be at least 1, got {tokens}.")
        return cls(head, tokens)


@torch.no_grad()
def score_candidates(
    model: Any, prompt: Prompt, middles: Tensor, lengths: Tensor, score: Score, batch_size: int
) -> tuple[Tensor, Tensor]:
    r"""Eq. 7 or 8 of every candidate, and the log-probability of each of its new tokens.

    Eq. 7 is the product of T_n(x_i | F(x_1:i-1), B(x_i+1:T)) over the goal's tokens x_i; Eq. 8 is that of T_p over the
    text's last tokens. Both heads are given a prefix and a suffix with just x_i between them.

    Args:
        middles: new tokens, padded on the right, [candidates, horizon].
        lengths: how many they are, [candidates].
        batch_size: candidates at once.

    Returns:
        The logarithm of the product, [candidates], over fewer tokens only where the text has fewer behind its first
        one. \log T_n(x_i | F(x_1:i-1), B(goal)) of the new tokens, 0 at padding, [candidates, horizon].
    """
    pairs = max(score.tokens, middles.shape[1])
    size = max(1, min(batch_size, model.config.block_size // pairs))
    parts = [
        _score(model, prompt, rows, counts, score)
        for rows, counts in zip(middles.split(size), lengths.split(size), strict=True)
    ]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _score(model: Any, prompt: Prompt, middles: Tensor, lengths: Tensor, score: Score) -> tuple[Tensor, Tensor]:
    batch, horizon = middles.shape
    device, begin, after = middles.device, len(prompt.prefix), len(prompt.goal)
    # Every text is the prefix, the new tokens and the goal, one directly behind the other; padding is at its end.
    columns = torch.arange(horizon + after, device=device).expand(batch, -1)
    both = torch.cat([middles, prompt.goal.expand(batch, -1)], 1)
    place = torch.where(columns < lengths[:, None], columns, columns - lengths[:, None] + horizon)
    tail = both.gather(1, place.clamp(max=horizon + after - 1))
    text = torch.cat([prompt.prefix.expand(batch, -1), tail], 1)
    read = model.model(tail, past_key_values=prompt.caches(batch), use_cache=True).last_hidden_state
    states = torch.cat([prompt.states.expand(batch, -1, -1), read], 1)

    at = begin + lengths[:, None] + after - 1 - torch.arange(score.tokens, device=device)  # x_T, x_T-1, ...
    scored = at >= 1  # F reads one token at least
    at = at.clamp(min=1)
    end = torch.full((batch, 1), model.config.end_token, device=device)
    behind = torch.cat([end, text.gather(1, at[:, :-1])], 1)  # the suffixes of x_T, x_T-1, ..., from their end
    if after and score.tokens == after:
        behind = behind[:1]  # the goal's suffixes are the same in every row
    suffixes = _read_backwards(model, behind)
    prefixes = states.gather(1, (at - 1)[..., None].expand(-1, -1, states.shape[-1]))
    logits = head_logits(model, prefixes, suffixes, score.head)
    total = (_log_probability(logits, text.gather(1, at)) * scored).sum(1)

    before = states[:, begin - 1 : begin - 1 + horizon]
    said = _log_probability(head_logits(model, before, prompt.suffix_state, "next"), middles)
    return total, said * (torch.arange(horizon, device=device) < lengths[:, None])


def _read_backwards(model: Any, tokens: Tensor) -> Tensor | None:
    """B after each of the tokens of a text read from its end, [batch, length, hidden]."""
    encoder = model.model.backward_encoder
    if encoder is None:
        return None
    return encoder(inputs_embeds=model.model.embed_tokens(tokens), use_cache=False).last_hidden_state


def head_logits(model: Any, prefixes: Tensor, suffixes: Tensor | None, head: str) -> Tensor:
    """T_n's or T_p's logits, [..., vocabulary]."""
    following, previous = model.text_head(prefixes, suffixes, previous=head == "previous")
    return following if head == "next" else previous


def _log_probability(logits: Tensor, tokens: Tensor) -> Tensor:
    logits = logits.float() if logits.element_size() < 4 else logits
    return logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
