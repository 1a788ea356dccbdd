"""Probes of Section 5.4: small MLPs that read the path and the graph from the state behind the prompt."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_mech.probing.state_probes import StateProbes

from ..engine.probes import Readings, fit
from .batches import PROBES, held_out
from .models import prompt_states
from .settings import Run

TRAINED, CHOSEN, TESTED = 16_000, 2_000, 4_000
"""Graphs that the probes are trained on, that choose their epoch, and that they are measured on."""


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
    return fit(
        states,
        targets_of(run, rows).to(states.device),
        names_of(run),
        len(run.final.tokens),
        run.seed,
        chosen=CHOSEN,
        tested=TESTED,
    )


def known_bits(run: Run, readings: dict[str, Any]) -> float:
    """What the probes know of the path, in bits: log2 N less the cross-entropy, summed over its nodes.

    This is the usable information of Xu et al. (2020) for these probes. The path has up to l log2 N bits of it.
    """
    return sum(math.log2(run.num_nodes) - bits for bits in readings["bits"][: run.final.length])
