"""Probes of states (Section 5.4 of the Belief State Transformer's paper): trains one small MLP for each target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from hf_mech.probing.state_probes import StateProbes

EPOCHS, BATCH, LEARNING_RATE = 12, 256, 3e-3


@dataclass
class Readings:
    """What probes read from states that they were not trained on; one figure a target.

    Attributes:
        accuracy: the share of states whose token is right.
        bits: cross-entropy; without any knowledge of one of N tokens it is log2 N.
    """

    accuracy: list[float]
    bits: list[float]


def fit(
    states: Tensor,
    tokens: Tensor,
    names: Sequence[str],
    vocabulary: int,
    seed: int,
    *,
    chosen: int,
    tested: int,
    width: int = 128,
) -> tuple[StateProbes, Readings]:
    """Probes from states [count, size] to tokens [count, targets].

    Args:
        states: those that train the probes, then those that choose each target's epoch, then those that test them.
        tokens: what the probes are to read.
        names: of the targets.
        vocabulary: the number of tokens.
        seed: of the first weights and of the order; no random number is taken from torch.
        chosen, tested: states of the second and the third kind.
        width: of the hidden layers.
    """
    sizes = [len(states) - chosen - tested, chosen, tested]
    (known, choosing, unseen), (known_tokens, choosing_tokens, unseen_tokens) = states.split(sizes), tokens.split(sizes)
    generator = torch.Generator().manual_seed(seed)
    probes = StateProbes(names, states.shape[1], vocabulary, width, generator).to(states.device)
    probes.mean, probes.std = states.mean(0), states.std(0).clamp(min=1e-6)
    best, kept = torch.full((len(names),), math.inf, device=states.device), deepcopy(probes)
    optimizer = torch.optim.Adam(probes.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, EPOCHS)
    for _ in range(EPOCHS):
        with torch.enable_grad():
            for batch in _batches(len(known), generator):
                optimizer.zero_grad()
                _losses(probes, known[batch], known_tokens[batch]).sum().backward()
                optimizer.step()
        schedule.step()
        with torch.no_grad():  # each target's epoch is the one that reads other graphs best
            loss = _losses(probes, choosing, choosing_tokens)
            better, best = loss < best, torch.minimum(loss, best)
            for own, new in zip(kept.parameters(), probes.parameters(), strict=True):
                own[better] = new[better]
    with torch.no_grad():
        accuracy = (kept(unseen).argmax(-1) == unseen_tokens.T).float().mean(1)
        bits = _losses(kept, unseen, unseen_tokens) / math.log(2)
    return kept.eval(), Readings(accuracy.tolist(), bits.tolist())


def _losses(probes: StateProbes, states: Tensor, tokens: Tensor) -> Tensor:
    """Each target's cross-entropy in nats, [targets], for tokens [count, targets]."""
    return functional.cross_entropy(probes(states).mT, tokens.T, reduction="none").mean(1)


def _batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    yield from torch.randperm(count, generator=generator).split(BATCH)
