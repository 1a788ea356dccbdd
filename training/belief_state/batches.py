"""The batch of each step, a pure function of the seed and the step, and the graphs of the test."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead.star_graphs import StarGraph
from hf_mech.lookahead.star_graphs.layouts import lay_out, width_of

from .settings import BELIEF_STATES, Run

TRAIN, TEST, CURVE, CHOICES, ORDER, PROBES, PLACES = range(7)
"""Streams of random numbers that have nothing in common."""


class StarGraphBatches(Dataset[dict[str, Any]]):
    """Item `step` is the batch of that step: arguments of the model's forward.

    With `examples`, a batch is one of a fixed number, and every epoch has an order of its own. Else all graphs are new:
    none of 10,000 test graphs G(2,5) is among the 217,600 rows of the preset `cpu` but with a chance of 6e-11, as
    there are N! / (N - 9)! / 2 graphs in 8! orders, each with two goals.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def __getitem__(self, step: int) -> dict[str, Any]:
        run = self.run
        number = self.number(step)
        graph = run.grown(step / run.steps)
        rows = graph.draw(run.batch_size, Dice(run.seed, (TRAIN, number)))
        rows += (rows >= graph.num_nodes) * (run.num_nodes - graph.num_nodes)  # separators keep their ids
        whole = StarGraph(graph.degree, graph.length, run.num_nodes, run.directed)
        # Subgoals and suffixes are chosen anew in every epoch.
        batch = lay_out(whole, run.layout, rows, Dice(run.seed, (CHOICES, step)))
        arguments: dict[str, Any] = {name: torch.from_numpy(array) for name, array in batch.items()}
        if graph.row_length < run.final.row_length:
            # Rows of smaller graphs end where the last ones end, so the last positions are trained from the beginning;
            # or all positions are.
            count, width = batch["input_ids"].shape
            free = width_of(run.final, run.layout) - width
            begin = np.full((count, 1), free)
            if run.places == "any":
                begin = Dice(run.seed, (PLACES, step)).below(free + 1, (count, 1))
            arguments["position_ids"] = torch.from_numpy(begin + np.arange(width))
        # The loss of the belief states needs no logits of the output; the baselines compute theirs from it.
        return arguments | ({"logits_to_keep": 1} if run.model in BELIEF_STATES else {})

    def number(self, step: int) -> int:
        """The batch's number among those of the examples; without them, the step."""
        if not self.run.examples:
            return step
        batches = self.run.examples // self.run.batch_size
        epoch, place = divmod(step, batches)
        words = Dice(self.run.seed, (ORDER, epoch)).words((batches,))
        return int(np.argsort(words, kind="stable")[place])


def held_out(run: Run, count: int, stream: int = TEST) -> Tensor:
    """Graphs that every model of the seed is measured on, [count, row_length].

    Args:
        run: of the graphs and the seed.
        count: the number of graphs; others for another number.
        stream: `TEST`, `CURVE` for the measurements while a model trains, or `PROBES`.
    """
    return torch.from_numpy(run.final.draw(count, Dice(run.seed, (stream,))))
