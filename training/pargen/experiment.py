"""Compiled programs on the prompts of templatic generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hf_mech.hub.environment import usable_cores
from hf_mech.templatic.tasks import task_named

from ..engine import Experiment, Job, Options, SettingsError
from ..engine.arguments import Request
from ..engine.card import Card
from . import report
from .run import Part, PartOutcome, digest_of, positions_for, run_part


@dataclass(kw_only=True)
class PargenOptions(Options):
    """Options of the programs besides those of all."""

    num_train: int | None = field(default=None, metadata={"help": "only so many prompts of the train split; else all"})
    num_prompts: int | None = field(default=None, metadata={"help": "only so many prompts of every split; else all"})
    part_size: int = field(default=20_000, metadata={"help": "prompts in one part"})


class PargenExperiment(Experiment[Part, PartOutcome]):
    """A run is a part of a split; nothing is trained."""

    name = "pargen"
    settings = Part
    outcome = PartOutcome
    options = PargenOptions
    unit = "parts"
    preset = "whole"
    forgotten = ("program_digest",)

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

    def train(self, settings: Part, job: Job) -> PartOutcome:
        return run_part(settings, job)

    def belongs(self, outcome: PartOutcome, asked: Sequence[Part]) -> bool:
        return outcome.settings.program in {part.program for part in asked}

    def order(self, outcome: PartOutcome) -> Any:
        return report.order(outcome)

    def cards(self, finished: Mapping[Path, PartOutcome]) -> Iterable[Card]:
        for program in dict.fromkeys(outcome.settings.program for outcome in finished.values()):
            yield report.card_of(program, [o for o in finished.values() if o.settings.program == program])

    def table(self, finished: Sequence[PartOutcome]) -> str:
        programs = dict.fromkeys(outcome.settings.program for outcome in finished)
        own = [[o for o in finished if o.settings.program == program] for program in programs]
        table = report.table_of(entry for outcomes in own for entry in report.measurements(outcomes))
        return "\n\n".join([table.markdown(), *report.wrong_completions(finished)])

    def results(self, cards: Path) -> dict[str, str]:
        return {"programs": report.table_of_cards(cards)}

    def summary(self, cards: Path) -> list[list[str]]:
        return report.summary(cards)

    def upgrade(self, record: dict[str, Any], folder: Path) -> dict[str, Any] | None:
        """Before, a part was one file, which held its settings and the digest of the program."""
        if "part" not in record:
            return record if "program_digest" in record else None
        part = {**record["part"], "program_digest": record["program_digest"], "preset": self.preset}
        usual = part["max_position_embeddings"] == positions_for(part["task"])
        return part | ({"max_position_embeddings": None} if usual else {})


EXPERIMENT = PargenExperiment()
