"""M-SAT, MAT and the baseline with and without positions: Figure 3 and Tables 2 and 3 of the paper."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class MSATOptions(StepOptions):
    """Options of M-SAT besides those of every experiment."""

    eval_envs: int = field(default=8, metadata={"help": "environments played at a time", "least": 1})


class MSATExperiment(Experiment[Run, RunOutcome]):
    """A run is one model in one scenario from one seed."""

    name = "msat"
    paper = "moodley2024msat"
    settings = Run
    outcome = RunOutcome
    options = MSATOptions
    train = staticmethod(train_run)
    report = report
    seeds = 1

    def shares_card(self, settings: Run, /) -> Hashable:
        """A card is of one preset, scenario and kind of components."""
        return settings.preset, settings.scenario, settings.component_prediction


EXPERIMENT = MSATExperiment()
