"""The paper's formulas from a model's public outputs alone: one call of `forward` for every prefix and suffix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Tokens = Sequence[int]


def heads(model: Any, prefix: Tokens, suffix: Tokens) -> tuple[Tensor, Tensor | None]:
    """Logarithms of T_n and T_p given F(prefix) and B(suffix), each [vocabulary] (Eq. 1).

    The end token stands behind every suffix, also behind one that ends with it.
    """
    given = {"suffix_ids": torch.tensor([[*suffix, model.config.end_token]])} if model.config.use_backward else {}
    outputs = model(torch.tensor([list(prefix)]), output_prev_logits=model.config.predict_previous, **given)
    before = outputs.prev_logits
    return outputs.logits[0, -1].log_softmax(-1), None if before is None else before[0, -1].log_softmax(-1)


def loss(model: Any, texts: Sequence[Tokens], weights: str, prompt: int = 1) -> Tensor:
    """The loss of texts without their end tokens, as the README's formulas have it.

    A text is x_1 to x_T, and x_T+1 is its end token, which is trained with `least_gap=1`. The first `prompt` tokens are
    not trained.
    """
    end, least = model.config.end_token, model.config.least_gap
    total, trained_tokens = torch.zeros((), dtype=torch.float64), 0
    for text in texts:
        x = [None, *text, end]  # counted from 1
        last = len(text) + 1
        trained = range(prompt + 1, last + 1 if least == 1 else last)
        pairs = [
            (i, j)
            for i in range(1, last)
            for j in range(i + least, last + 1)
            if i + 1 in trained and (j == i + 1 or j - 1 in trained)
        ]
        for i, j in pairs:
            following, previous = heads(model, x[1 : i + 1], x[j:last])
            after, before = (end, end) if j == i + 1 else (x[i + 1], x[j - 1])
            losses = [-following[after]] + ([] if previous is None else [-previous[before]])
            a = sum(k in trained for k in range(1, i + 1))
            c = sum(k in trained for k in range(j, last))
            w = len(trained) / len(pairs) if weights == "sequence" else 1 / (1 + a + c)
            total = total + w * sum(losses) / len(losses)
        trained_tokens += len(trained)
    return total / trained_tokens


def score(model: Any, text: Tokens, last: int, head: str) -> float:
    """The logarithm of Eq. 7 (`head` "next", the goal's tokens) or Eq. 8 ("previous") over the `last` tokens.

    Eq. 8's product from T - k to T has k + 1 factors, the text says k; `last` is their number. F reads one token at
    least.
    """
    found = 0.0
    for i in range(max(1, len(text) - last), len(text)):
        following, previous = heads(model, text[:i], text[i + 1 :])
        said = following if head == "next" else previous
        assert said is not None
        found += said[text[i]].item()
    return found


def algorithm1(
    model: Any, prompt: Tokens, goal: Tokens, new: int, rollouts: int, end: int | None = None
) -> list[tuple[list[int], float]]:
    """Candidates in the order of Algorithm 1, each the new tokens and the priority with which it left the queue.

    Args:
        end: the end token if it ends a text and is never queued; the paper does not say so.
    """
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
            queue += [(r * float(p / said[greedy]), [*s, x]) for x, p in enumerate(said) if x not in (greedy, end)]
            if greedy == end:
                break
            s = [*s, greedy]
        candidates.append((s[len(prompt) :], priority))
    return candidates


def algorithm2(model: Any, prompt: Tokens, goal: Tokens, new: int, beams: int) -> list[tuple[list[int], float]]:
    """The `beams` best continuations of Algorithm 2 and their probabilities, the best first; F and B read all."""
    queue: list[tuple[float, list[int]]] = [(1.0, [])]
    for _ in range(new):
        grown = []
        for r, u in queue:
            said = heads(model, [*prompt, *u], goal)[0].exp().tolist()
            grown += [(r * p, [*u, x]) for x, p in enumerate(said)]
        queue = sorted(grown, reverse=True)[:beams]
    return [(u, r) for r, u in queue]


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
