"""How far back from the goal the state behind the prompt knows the path: where the choice of the arm ends."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from .settings import Run

GRAPHS = 1_000
"""Graphs that it is measured on."""


@torch.no_grad()
def way_back(run: Run, model: PreTrainedModel, rows: Tensor, batch_size: int) -> list[float]:
    """The share of graphs whose node before a suffix the model names, from its state behind the prompt (Eq. 1).

    The suffix begins ever earlier: with the goal, with the node before it, and so on. A model that says all these
    nodes has found the goal's arm up to the first node behind the start, which is the choice that greedy decoding
    needs. A model that does not has the nodes up to some step, and then guesses.

    Args:
        run: of the graphs.
        model: the Belief State Transformer with `T_p` and a backward encoder, in evaluation mode.
        rows: [count, row_length], from `StarGraph.draw`.
        batch_size: graphs at a time.

    Returns:
        [length - 2]: one step back from the goal first.
    """
    graph = run.final
    right = torch.zeros(graph.length - 2)
    for part in rows.to(model.device).split(batch_size):
        prompts, paths = part[:, : graph.prompt_length], part[:, graph.prompt_length : -1]
        for step in range(1, graph.length - 1):
            said = model(prompts, suffix_ids=paths[:, -step:], logits_to_keep=1).prev_logits[:, -1].argmax(-1)
            right[step - 1] += (said == paths[:, -step - 1]).sum().cpu()
    shares: list[float] = (right / len(rows)).tolist()
    return shares
