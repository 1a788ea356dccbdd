"""Models that learn templatic generation: Table 3 of the symbol processing paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine import Experiment, Job, StepOptions
from ..engine.card import Card
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class TemplaticOptions(StepOptions):
    """Options of the baselines besides those of all."""

    eval_batch: int = field(default=100, metadata={"help": "prompts completed at a time"})


class TemplaticExperiment(Experiment[Run, RunOutcome]):
    """A run is one model on one task from one seed."""

    name = "templatic"
    settings = Run
    outcome = RunOutcome
    options = TemplaticOptions

    def train(self, settings: Run, job: Job) -> RunOutcome | None:
        return train_run(settings, job)

    def belongs(self, outcome: RunOutcome, asked: Sequence[Run]) -> bool:
        return super().belongs(outcome, asked) and outcome.settings.task in {run.task for run in asked}

    def order(self, outcome: RunOutcome) -> Any:
        return outcome.settings.task, outcome.settings.preset, report.order(outcome)

    def cards(self, finished: Mapping[Path, RunOutcome]) -> Iterable[Card]:
        for kind in dict.fromkeys((o.settings.task, o.settings.preset) for o in finished.values()):
            own = {f: o for f, o in finished.items() if (o.settings.task, o.settings.preset) == kind}
            yield report.card_of(*kind, own)

    def table(self, finished: Sequence[RunOutcome]) -> str:
        return report.table3(report.measurements(finished)).markdown()

    def results(self, cards: Path) -> dict[str, str]:
        return {"templatic-table-3": report.table_of_card(cards)}

    def summary(self, cards: Path) -> list[list[str]]:
        return report.summary(cards)

    def upgrade(self, record: dict[str, Any], folder: Path) -> dict[str, Any] | None:
        """Before, the arguments of the data set were one text of JSON."""
        if "eval_prompts" not in record:
            return None
        if "data" not in record:
            return record
        data = json.loads(record["data"])
        record = {name: value for name, value in record.items() if name != "data"}
        given = {"data_seed": data.get("seed", 0), "num_train": data.get("num_train"), "num_eval": data.get("num_eval")}
        return record | given


EXPERIMENT = TemplaticExperiment()
