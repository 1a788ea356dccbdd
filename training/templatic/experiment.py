"""Models that learn templatic generation: Table 3 of the symbol processing paper."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class TemplaticOptions(StepOptions):
    """Options of the baselines besides those of all."""

    eval_batch: int = field(default=100, metadata={"help": "prompts completed at a time", "least": 1})


class TemplaticExperiment(Experiment[Run, RunOutcome]):
    """A run is one model on one task from one seed."""

    name = "templatic"
    settings = Run
    outcome = RunOutcome
    options = TemplaticOptions
    train = staticmethod(train_run)
    report = report

    def shares_card(self, settings: Run) -> Hashable:
        return settings.task, settings.preset

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
