"""Stories: goal-conditioned and unconditional generation of Section 5 of the Belief State Transformer's paper."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


@dataclass(kw_only=True)
class StoryOptions(StepOptions):
    """Options of the stories besides those of every experiment."""

    eval_batch: int = field(default=20, metadata={"help": "stories measured at a time", "least": 1})
    num_rollouts: int = field(
        default=120, metadata={"help": "continuations that Algorithm 1 chooses from (bst); 0: no search", "least": 0}
    )


class StoriesExperiment(Experiment[Run, RunOutcome]):
    """A run is one model from one seed."""

    name = "stories"
    paper = "hu2025belief"
    settings = Run
    outcome = RunOutcome
    options = StoryOptions
    train = staticmethod(train_run)
    report = report
    seeds = 1


EXPERIMENT = StoriesExperiment()
