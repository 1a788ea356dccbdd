"""Probes of Section 5.4: small MLPs that read the path and the graph from the state behind the prompt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from hf_mech.probing.state_probes import StateProbes

from .batches import PROBES, held_out
from .models import prompt_states
from .settings import Run

TRAINED, CHOSEN, TESTED = 16_000, 2_000, 4_000
"""Graphs that the probes are trained on, that choose their epoch, and that they are measured on."""
EPOCHS, BATCH, LEARNING_RATE = 12, 256, 3e-3


@dataclass
class Readings:
    """What probes read on graphs that they were not trained on; one figure a target.

    Attributes:
        accuracy: the share of graphs whose token is right.
        bits: cross-entropy; without any knowledge of a node it is log2 N.
    """

    accuracy: list[float]
    bits: list[float]


def targets_of(run: Run, rows: Tensor) -> Tensor:
    """The path's nodes, then parent and child of every edge in the prompt's order, [count, length + 2 edges]."""
    graph, array = run.final, rows.numpy()
    edges = torch.from_numpy(graph.edges_of(array).reshape(len(array), -1))
    return torch.cat([torch.from_numpy(graph.paths_of(array)), edges], 1)


def names_of(run: Run) -> list[str]:
    """The targets' names, in their order."""
    nodes = [f"node {number} of the path" for number in range(1, run.final.length + 1)]
    edges = [f"edge {number}, {end}" for number in range(1, run.final.edges + 1) for end in ("parent", "child")]
    return [*nodes, *edges]


def read_states(run: Run, model: PreTrainedModel, batch_size: int) -> tuple[StateProbes, Readings]:
    """Trains probes on a model's states, and measures them.

    The model is neither trained nor changed, and no random number is taken from torch.

    Args:
        run: of the graphs and the seed.
        model: in evaluation mode.
        batch_size: graphs at a time.
    """
    rows = held_out(run, TRAINED + CHOSEN + TESTED, PROBES)
    prompts = rows[:, : run.final.prompt_length]
    with torch.no_grad():
        states = torch.cat([prompt_states(model, part.to(model.device)) for part in prompts.split(batch_size)]).float()
    return fit(states, targets_of(run, rows).to(states.device), names_of(run), len(run.final.tokens), run.seed)


def fit(
    states: Tensor, tokens: Tensor, names: Sequence[str], vocabulary: int, seed: int
) -> tuple[StateProbes, Readings]:
    """Probes from states [count, size] to tokens [count, targets], trained on all but the last `CHOSEN + TESTED`."""
    sizes = [len(states) - CHOSEN - TESTED, CHOSEN, TESTED]
    (known, chosen, tested), (known_tokens, chosen_tokens, tested_tokens) = states.split(sizes), tokens.split(sizes)
    generator = torch.Generator().manual_seed(seed)
    probes = StateProbes(names, states.shape[1], vocabulary, generator=generator).to(states.device)
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
            loss = _losses(probes, chosen, chosen_tokens)
            better, best = loss < best, torch.minimum(loss, best)
            for own, new in zip(kept.parameters(), probes.parameters(), strict=True):
                own[better] = new[better]
    with torch.no_grad():
        accuracy = (kept(tested).argmax(-1) == tested_tokens.T).float().mean(1)
        bits = _losses(kept, tested, tested_tokens) / math.log(2)
    return kept.eval(), Readings(accuracy.tolist(), bits.tolist())


def _losses(probes: StateProbes, states: Tensor, tokens: Tensor) -> Tensor:
    """Each target's cross-entropy in nats, [targets], for tokens [count, targets]."""
    return functional.cross_entropy(probes(states).mT, tokens.T, reduction="none").mean(1)


def _batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    yield from torch.randperm(count, generator=generator).split(BATCH)


def known_bits(run: Run, readings: dict[str, Any]) -> float:
    """What the probes know of the path, in bits: log2 N less the cross-entropy, summed over its nodes.

    This is the usable information of Xu et al. (2020) for these probes. The path has up to l log2 N bits of it.
    """
    return sum(math.log2(run.num_nodes) - bits for bits in readings["bits"][: run.final.length])
