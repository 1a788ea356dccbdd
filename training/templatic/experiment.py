"""Models that learn templatic generation: Table 3 of the symbol processing paper."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class TemplaticOptions(StepOptions):
    """Options of the baselines besides those of every experiment."""

    eval_batch: int = field(default=100, metadata={"help": "prompts completed at a time", "least": 1})


class TemplaticExperiment(Experiment[Run, RunOutcome]):
    """A run is one model on one task from one seed."""

    name = "templatic"
    paper = "smolensky2024mechanisms"
    settings = Run
    outcome = RunOutcome
    options = TemplaticOptions
    train = staticmethod(train_run)
    report = report

    def shares_card(self, settings: Run) -> Hashable:
        return settings.task, settings.preset


EXPERIMENT = TemplaticExperiment()
