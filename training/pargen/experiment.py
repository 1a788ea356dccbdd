"""Compiled programs on the prompts of templatic generation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from hf_mech.hub.environment import usable_cores
from hf_mech.programs.templatic.tasks import task_named

from ..engine import Experiment, Options, Request, SettingsError
from . import report
from .run import Part, PartOutcome, digest_of, run_part


@dataclass(kw_only=True)
class PargenOptions(Options):
    """Options of the programs besides those of every experiment."""

    num_train: int | None = field(default=None, metadata={"help": "only so many prompts of the train split; else all"})
    num_prompts: int | None = field(default=None, metadata={"help": "only so many prompts of every split; else all"})
    part_size: int = field(default=20_000, metadata={"help": "prompts in one part"})


class PargenExperiment(Experiment[Part, PartOutcome]):
    """A run is a part of a split; nothing is trained."""

    name = "pargen"
    paper = "smolensky2024mechanisms"
    settings = Part
    outcome = PartOutcome
    options = PargenOptions
    unit = "parts"
    preset = "whole"
    train = staticmethod(run_part)
    report = report

    def stages(self, request: Request[PargenOptions]) -> Iterable[Sequence[Part]]:
        """Task by task, split by split, in parts."""
        options = request.options
        for name in ("num_train", "num_prompts", "part_size"):
            if (given := getattr(options, name)) is not None and given < 1:
                raise SettingsError(f"--{name} must be 1 or more, got {given}.")
        if len(request.seeds) > 1:
            raise SettingsError(f"--seeds: a table is of one seed of the data, got {len(request.seeds)}.")
        parts = []
        for given in request.combinations():
            limits = [task_named(given["task"]).size(given["split"]), options.num_prompts]
            limits += [options.num_train] if given["split"] == "train" else []
            size = min(limit for limit in limits if limit is not None)
            digest = digest_of(given["program"])
            for start in range(0, size, options.part_size):
                stop = min(start + options.part_size, size)
                parts.append(Part.of(start=start, stop=stop, program_digest=digest, **given))
        if (options.jobs or usable_cores()) == 1:
            torch.set_num_threads(1)
        yield parts

    def shares_card(self, settings: Part) -> Hashable:
        return settings.program


EXPERIMENT = PargenExperiment()
