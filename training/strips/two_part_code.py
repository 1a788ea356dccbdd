"""A cell by the shortest two-part code: a search for all seeds, the chains of each side by side; no gradient."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from hf_mech.hub.environment import usable_cores
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig
from hf_mech.planning.two_part_code import Search, TwoPartCode, complete, positions_of, speaking, theta_of

from ..engine import Job
from ..engine.run import last_checkpoint, save_state
from ..engine.settings import parse_seeds
from .fit import Fit
from .settings import Cell

_SAVE_SWEEPS = 20  # sweeps between two saves


@dataclass
class _Progress:
    """The search and its time, for accelerate to save and restore."""

    search: Search
    seconds: float = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {"search": self.search.state_dict(), "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.search.load_state_dict(state["search"])
        self.seconds = state["seconds"]


def fit(
    cell: Cell, job: Job, accelerator: Accelerator, model: StripsTransformer, train: tuple[Tensor, Tensor]
) -> Fit | None:
    """Anneals, or goes on where a killed run stopped; None if `job.stop_at` ended it. Arguments as `gradient.fit`."""
    seeds, threads = parse_seeds([cell.seeds]), 1
    if job.position == 0:  # no other run beside this one
        threads = job.options.jobs or usable_cores()
    input_ids, labels = train
    traces = [ids[told >= 0].tolist() for ids, told in zip(input_ids, labels, strict=True)]
    data = positions_of(traces, [told[told >= 0].tolist() for told in labels], model.config.actions)
    keys = [(seed, restart) for seed in seeds for restart in range(cell.restarts)]
    most = round(model.config.num_propositions * cell.search_factor)
    code = TwoPartCode(sweeps=cell.sweeps, label_noise=cell.label_noise)
    progress = _Progress(Search(data, most, keys, code))
    search = progress.search
    accelerator.register_for_checkpointing(progress)
    if checkpoint := last_checkpoint(job.folder):
        accelerator.load_state(str(checkpoint))
    with job.bar(search.sweeps, initial=search.sweep) as bar:
        while search.sweep < search.sweeps:
            began = time.perf_counter()
            bar.update(search.advance(_SAVE_SWEEPS, threads))
            progress.seconds += time.perf_counter() - began
            if (bits := min(search.bits)) < math.inf:
                bar.set_postfix_str(f"{bits:,.0f} bits")
                job.tracker.log({"train/code_bits": bits}, search.sweep)
            save_state(accelerator, job.folder, search.sweep)
            if job.stop_at is not None and search.sweep >= job.stop_at:
                return None
    best = [
        min(range(own, own + cell.restarts), key=search.bits.__getitem__) for own in range(0, len(keys), cell.restarts)
    ]
    guesses = [search.best(chain) for chain in best]
    if not cell.shortest_only:
        guesses = [complete(guess, data, code) for guess in guesses]
    most = max(model.config.num_propositions, *(int(speaking(own).sum()) for own in guesses))
    model = StripsTransformer(
        StripsTransformerConfig(actions=model.config.actions, num_propositions=most, ensemble=len(seeds))
    )
    model.theta.data.zero_()
    for theta, guess in zip(model.theta.data, guesses, strict=True):
        learned = torch.as_tensor(theta_of(guess)[speaking(guess)])
        theta[: len(learned)] = learned
    return Fit(
        model=model,
        steps=search.sweep,
        seconds=progress.seconds,
        settled_at=[None] * len(seeds),
        redraws=[0] * len(seeds),
        code_bits=[search.bits[chain] for chain in best],
    )
