"""The paper's formulas from a model's public outputs alone: one call of `forward` for every prefix and suffix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Tokens = Sequence[int]


def heads(model: Any, prefix: Tokens, suffix: Tokens) -> tuple[Tensor, Tensor | None]:
    """Logarithms of T_n and T_p given F(prefix) and B(suffix), each [vocabulary] (Eq. 1)."""
    empty = {"output_prev_logits": model.config.predict_previous}
    outputs = model(torch.tensor([list(prefix)]), **({"suffix_ids": torch.tensor([list(suffix)])} if suffix else empty))
    before = outputs.prev_logits
    return outputs.logits[0, -1].log_softmax(-1), None if before is None else before[0, -1].log_softmax(-1)


def pairs(length: int, least: int, prompt: int = 1) -> list[tuple[int, int]]:
    """All (i, j), counted from 1, of a text x_1 to x_length: the prefix x_1:i, the suffix x_j:, empty at length + 1.

    The labels x_i+1 and x_j-1 lie behind the prompt.
    """
    return [(i, j) for i in range(prompt, length + 1) for j in range(i + least, length + 2)]


def loss(model: Any, text: Tokens, weights: str, prompt: int = 1) -> tuple[Tensor, int]:
    """Eq. 2 for a text without its end token: the weighted mean over its pairs, and their number."""
    end, least = model.config.end_token, model.config.least_gap
    found = pairs(len(text), least, prompt)
    of_gap = {gap: sum(j - i == gap for i, j in found) for gap in range(least, len(text) + 2)}
    total, weight = torch.zeros((), dtype=torch.float64), 0.0
    for i, j in found:
        after, before = end, end
        if j - i > 1:
            after, before = text[i], text[j - 2]  # x_i+1 and x_j-1
        following, previous = heads(model, text[:i], text[j - 1 :] if model.config.use_backward else ())
        losses = [-following[after]] + ([] if previous is None else [-previous[before]])
        share = 1.0 if weights == "sequence" else 1 / of_gap[j - i]
        total = total + share * sum(losses) / len(losses)
        weight += share
    return total / weight, len(found)


def eq7(model: Any, text: Tokens, goal: int) -> float:
    """The logarithm of Eq. 7; the goal begins behind `goal` tokens."""
    return sum(heads(model, text[:i], text[i + 1 :])[0][text[i]].item() for i in range(goal, len(text)))


def eq8(model: Any, text: Tokens, last: int) -> float:
    """The logarithm of Eq. 8 over the `last` tokens."""
    found = 0.0
    for i in range(len(text) - last, len(text)):
        before = heads(model, text[:i], text[i + 1 :])[1]
        assert before is not None
        found += before[text[i]].item()
    return found


def algorithm1(model: Any, prompt: Tokens, goal: Tokens, new: int, rollouts: int) -> list[tuple[list[int], float]]:
    """Candidates in the order of Algorithm 1, each the new tokens and the priority with which it left the queue."""
    queue: list[tuple[float, list[int]]] = [(1.0, list(prompt))]
    candidates = []
    for _ in range(rollouts):
        if not queue:
            break
        r, s = queue.pop(max(range(len(queue)), key=lambda place: queue[place][0]))
        priority = r
        while len(s) < len(prompt) + new:
            said = heads(model, s, goal)[0].exp()
            greedy = int(said.argmax())
            queue += [(r * float(p / said[greedy]), [*s, x]) for x, p in enumerate(said) if x != greedy]
            s = [*s, greedy]
        candidates.append((s[len(prompt) :], priority))
    return candidates


def algorithm2(model: Any, prompt: Tokens, goal: Tokens, new: int, beams: int) -> list[list[int]]:
    """The `beams` best continuations of Algorithm 2, the best first; F and B read prompt and goal."""
    queue: list[tuple[float, list[int]]] = [(1.0, [])]
    for _ in range(new):
        grown = []
        for r, u in queue:
            said = heads(model, [*prompt, *u], goal)[0].exp().tolist()
            grown += [(r * p, [*u, x]) for x, p in enumerate(said)]
        queue = sorted(grown, reverse=True)[:beams]
    return [u for _, u in queue]


def backwards(model: Any, prefix: Tokens, new: int) -> dict[tuple[int, ...], float]:
    """The distribution of x_t+1:T in the proof of Theorem 2, from the last token to the first."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(new):
        grown = {}
        for suffix, p in found.items():
            before = heads(model, prefix, suffix)[1]
            assert before is not None
            grown |= {(x, *suffix): p * q for x, q in enumerate(before.exp().tolist())}
        found = grown
    return found
