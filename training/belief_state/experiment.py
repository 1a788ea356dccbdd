"""Star graphs: Figures 2, 4 and 8 of the Belief State Transformer's paper."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class StarGraphOptions(StepOptions):
    """Options of the star graphs besides those of every experiment."""

    eval_batch: int = field(default=500, metadata={"help": "graphs measured at a time", "least": 1})


class BeliefStateExperiment(Experiment[Run, RunOutcome]):
    """A run is one model on one kind of graph from one seed."""

    name = "belief_state"
    paper = "hu2025belief"
    settings = Run
    outcome = RunOutcome
    options = StarGraphOptions
    train = staticmethod(train_run)
    report = report
    seeds = 3

    def shares_card(self, settings: Run) -> Hashable:
        return settings.card


EXPERIMENT = BeliefStateExperiment()
