"""Discrete attention on vectors, (70c): the exact equations, and a soft form with a temperature, footnote 13."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, one_hot

KAPPA = 2.0  # any number above 1, (70c-iv)
_FAR = -1e4  # a score at which no weight is left


def match_scores(queries: list[Tensor], keys: list[Tensor]) -> Tensor:
    """The normalised products of (70c-i), [batch, N, n]: 1 where all targets match.

    The product is divided by the number of targets. That is |q|^2 if the query is one-hot in each of them. It is also
    correct for a negated query, for one of several constants, and for a function without a value.

    Args:
        queries, keys: for every target [batch, N, values] and [batch, n, values].
    """
    products = [torch.matmul(query, key.transpose(-1, -2)) for query, key in zip(queries, keys, strict=True)]
    return torch.stack(products).sum(0) / len(products)


def dat_max(matches: Tensor, right: bool = False) -> Tensor:
    """DATmax, (70c-i): a one-hot row at the first (or last) match, zeros where there is none.

    Args:
        matches: the cells that may be attended to, a boolean [batch, N, n].
        right: take the last match, (61e).
    """
    ordered = matches.flip(-1) if right else matches
    first = ordered & (ordered.long().cumsum(-1) == 1)
    return first.flip(-1) if right else first


def soft_first_match(scores: Tensor, right: bool = False) -> Tensor:
    """Soft DATmax: the weight of n is the probability that n matches and no cell before it does.

    Each n matches with probability sigmoid(score); a row sums to 1 minus the probability of no match. With the scores
    divided by a temperature that goes to 0 this is `dat_max` of `scores > 0`. Footnote 13 breaks ties with a term that
    decreases with n; its size would depend on length and temperature. No such term is needed here.

    Args:
        scores: [batch, N, n]; values below `_FAR` mark cells that may not be attended to.
        right: count from the right.
    """
    ordered = scores.flip(-1) if right else scores
    missed = logsigmoid(-ordered).cumsum(-1)
    before = torch.cat([torch.zeros_like(missed[..., :1]), missed[..., :-1]], -1)
    weights = (logsigmoid(ordered) + before).exp()
    return weights.flip(-1) if right else weights


def soft_first_match_reference(scores: Tensor, right: bool = False) -> Tensor:
    """[`soft_first_match`] position by position."""
    order = range(scores.shape[-1])
    weights: dict[int, Tensor] = {}
    left = torch.ones_like(scores[..., 0])
    for n in reversed(order) if right else order:
        probability = torch.sigmoid(scores[..., n])
        weights[n], left = left * probability, left * (1 - probability)
    return torch.stack([weights[n] for n in order], -1)


def dat_norm(vectors: Tensor) -> Tensor:
    """DATnorm, (70c-iii): a register [..., values] becomes one-hot at its largest neuron; a zero one stays zero."""
    largest = one_hot(vectors.argmax(-1), vectors.shape[-1]).to(vectors.dtype)
    return torch.where((vectors != 0).any(-1, keepdim=True), largest, vectors)


def soft_dat_norm(vectors: Tensor, temperature: float) -> Tensor:
    """Soft DATnorm: a softmax over log activity. Neurons at 0 stay at 0, so open places have no effect."""
    peak = vectors.amax(-1, keepdim=True).clamp(min=1e-6)
    powers = (vectors.clamp(min=0.0) / peak).clamp(min=1e-12) ** (1.0 / temperature)
    powers = torch.where(vectors > 0, powers, torch.zeros_like(powers))
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-12)


def attention_weights(scores: Tensor, targets: int, allowed: Tensor, right: bool, temperature: float) -> Tensor:
    """The weights of the read cells, [batch, N, n]: one-hot or zero at temperature 0, else the soft first match.

    Args:
        scores: from `match_scores`.
        targets: the number of targets; each target that does not match lowers the score by 1 / targets.
        allowed: where a cell may be read, a boolean [batch, N, n].
    """
    surplus = targets * (scores - 1.0) + 0.5  # half a target above or below the threshold
    if temperature == 0:
        return dat_max((surplus > 0) & allowed, right).to(scores.dtype)
    return soft_first_match((surplus / temperature).masked_fill(~allowed, _FAR), right)


def update(register: Tensor, value: Tensor, weights: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
    """The output of one register, (70c-iv): DATnorm(i[N] + kappa v[n]).

    Args:
        register: i, [batch, N, width].
        value: v, [batch, n, width].
        weights: from `attention_weights`.
        norm: DATnorm, for the vectors that the registers hold.
    """
    return norm(register + KAPPA * torch.matmul(weights, value))
