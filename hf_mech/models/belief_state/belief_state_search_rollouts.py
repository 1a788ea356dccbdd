"""The rollouts of Algorithm 1, many at once: greedy continuations and the alternatives beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import LogitsProcessorList

from .belief_state_search_scores import Prompt, head_logits


@dataclass
class Rollout:
    """A beginning with its greedy continuation (lines 5 to 10).

    Attributes:
        tokens: the new tokens, the beginning included.
        alternatives: what goes to the queue: the loss log T_max - log T(x) >= 0, the position and the token x, only as
            many as can ever leave it.
    """

    tokens: list[int]
    alternatives: list[tuple[float, int, int]]


class Rollouts:
    """Continues beginnings greedily to the horizon, in one batch with a cache.

    The prefix is read once for all batches. Column c of a batch holds every text's token c, given or chosen, so
    nothing is padded, and the columns that all beginnings have are read at once.

    Args:
        horizon: the new tokens of a text, the paper's k - 1.
        processors: of `generate()`, applied to the logits.
        end: the end token if a text ends before it, else None.
        keep: the number of alternatives of a rollout that can leave the queue at all.
    """

    def __init__(
        self,
        model: Any,
        prompt: Prompt,
        horizon: int,
        processors: LogitsProcessorList,
        end: int | None,
        keep: int,
    ) -> None:
        self.model, self.prompt, self.horizon = model, prompt, horizon
        self.processors, self.end, self.keep = processors, end, keep
        self.first = head_logits(model, prompt.states[:, -1:], prompt.suffix_state, "next")[:, -1]

    @torch.no_grad()
    def __call__(self, beginnings: list[list[int]]) -> list[Rollout]:
        """The rollouts of beginnings of at most `horizon` tokens."""
        going = [begun for begun in beginnings if len(begun) < self.horizon]
        continued = iter(self._continue(going) if going else [])
        return [next(continued) if len(begun) < self.horizon else Rollout(begun, []) for begun in beginnings]

    def _continue(self, beginnings: list[list[int]]) -> list[Rollout]:
        device, begin, batch = self.prompt.prefix.device, len(self.prompt.prefix), len(beginnings)
        given = torch.tensor([len(begun) for begun in beginnings], device=device)
        text = self.prompt.prefix.expand(batch, -1)
        text = torch.nn.functional.pad(text, (0, self.horizon))
        for row, begun in enumerate(beginnings):
            text[row, begin : begin + len(begun)] = torch.tensor(begun, dtype=text.dtype, device=device)
        cache = self.prompt.caches(batch)
        column = min(map(len, beginnings))
        logits = self.first.expand(batch, -1)
        if column:
            logits = self._read(text[:, begin : begin + column], cache)
        lengths = torch.full_like(given, self.horizon)
        found: list[tuple[Tensor, ...]] = []
        while True:
            own = (column >= given) & (column < lengths)
            best, losses, tokens = self._choose(text[:, : begin + column], logits)
            losses = losses.where(own[:, None], torch.inf)
            found.append((losses, torch.full_like(tokens, column), tokens))
            text[:, begin + column] = torch.where(own, best, text[:, begin + column])
            if self.end is not None:
                lengths = torch.where(own & (best == self.end), column, lengths)
            column += 1
            if column == self.horizon or (self.end is not None and bool((lengths < column).all())):
                break
            logits = self._read(text[:, begin + column - 1 : begin + column], cache)
        return self._collect(text[:, begin:], lengths, found)

    def _read(self, tokens: Tensor, cache: Any) -> Tensor:
        """The logits behind the last of the tokens, [batch, vocabulary]."""
        read = self.model.model(tokens, past_key_values=cache, use_cache=True).last_hidden_state[:, -1:]
        return head_logits(self.model, read, self.prompt.suffix_state, "next")[:, -1]

    def _choose(self, text: Tensor, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x_max [batch], and the losses and tokens of the best alternatives, [batch, alternatives] (lines 6 to 9)."""
        logits = self.processors(text, logits.float() if logits.element_size() < 4 else logits.clone())
        highest, best = logits.max(-1)
        losses = highest[:, None] - logits  # the same as with probabilities: T_max / T = exp(loss)
        losses.scatter_(1, best[:, None], torch.inf)
        if self.end is not None:
            losses[:, self.end] = torch.inf
        nearest = losses.topk(min(self.keep, losses.shape[1]), largest=False)
        return best, nearest.values, nearest.indices

    def _collect(self, texts: Tensor, lengths: Tensor, found: list[tuple[Tensor, ...]]) -> list[Rollout]:
        losses, columns, tokens = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        nearest = losses.topk(min(self.keep, losses.shape[1]), largest=False)
        parts = [part.gather(1, nearest.indices).tolist() for part in (losses.double(), columns, tokens)]
        rows = zip(texts.tolist(), lengths.tolist(), *parts, strict=True)
        return [
            Rollout(text[:length], [one for one in zip(*three, strict=True) if one[0] < torch.inf])
            for text, length, *three in rows
        ]
