"""Algorithms 1 and 2 and Eq. 7 and 8 as the paper writes them: one text at a time, without a cache."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any

import torch
from torch import Tensor


def probabilities(model: Any, text: list[int], goal: list[int], head: str = "next") -> Tensor:
    """T_n(. | F(text), B(goal)), or T_p's, [vocabulary]. The end token stands behind every goal, also an empty one."""
    prefix = model.model(torch.tensor([text])).last_hidden_state[:, -1:]
    suffix = model.suffix_state(torch.tensor([[*goal, model.config.end_token]]))
    following, previous = model.text_head(prefix, suffix)
    return (following if head == "next" else previous)[0, 0].softmax(-1)


@torch.no_grad()
def goal_conditioned_planning_reference(
    model: Any, prompt: list[int], goal: list[int], horizon: int, rollouts: int, end: int | None = None
) -> list[tuple[float, list[int]]]:
    """Algorithm 1 without line 12.

    Args:
        prompt: x_1:t.
        goal: x_t+k:T; empty for Section 5.2.
        horizon: k - 1, the tokens between.
        rollouts: n.
        end: the end token if it ends a text and is never queued; the paper does not say so.

    Returns:
        The candidates' priorities r and new tokens, in the order of the rollouts. The listing does not say which of two
        equal priorities leaves the queue first; here it is the earlier one. It ends when the queue is empty.
    """
    number = itertools.count()
    queue = [(-1.0, next(number), list(prompt))]  # line 1; heapq pops the least
    candidates = []  # line 2
    for _ in range(rollouts):  # line 3
        if not queue:
            break
        negative, _, text = heapq.heappop(queue)  # line 4
        while len(text) < len(prompt) + horizon:  # line 5
            said = probabilities(model, text, goal)
            best = int(said.argmax())  # line 6
            highest = float(said[best])  # line 7
            for token, probability in enumerate(said.tolist()):  # line 8
                if token not in (best, end):
                    heapq.heappush(queue, (negative * probability / highest, next(number), [*text, token]))  # line 9
            if best == end:
                break
            text = [*text, best]  # line 10
        candidates.append((-negative, text[len(prompt) :]))  # line 11
    return candidates


@torch.no_grad()
def score_reference(model: Any, prompt: list[int], new: list[int], goal: list[int], head: str, tokens: int) -> float:
    """The logarithm of Eq. 7 (the goal's tokens, `head="next"`) or Eq. 8 (`"previous"`), over the text's last tokens.

    Eq. 8's product from T - k to T has k + 1 factors, the text says k; `tokens` is their number.
    """
    text = [*prompt, *new, *goal]
    total = 0.0
    for i in range(max(1, len(text) - tokens), len(text)):
        total += math.log(probabilities(model, text[:i], text[i + 1 :], head)[text[i]])
    return total


@torch.no_grad()
def beam_search_reference(
    model: Any, prompt: list[int], goal: list[int], horizon: int, beams: int
) -> list[tuple[float, list[int]]]:
    """Algorithm 2 for T_n(. | F(x_1:t + u), B(goal)), "Belief Beamsearch"; the listing's loop ends with Q_K-1.

    Returns:
        The probabilities and new tokens of the `beams` best texts, the best first.
    """
    queue: list[tuple[float, list[int]]] = [(1.0, [])]
    for _ in range(horizon):
        found = []
        for priority, new in heapq.nlargest(beams, queue, key=lambda entry: entry[0]):
            said = probabilities(model, [*prompt, *new], goal).tolist()
            found += [(priority * probability, [*new, token]) for token, probability in enumerate(said)]
        queue = found
    return heapq.nlargest(beams, queue, key=lambda entry: entry[0])
