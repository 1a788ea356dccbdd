"""The Semi-formal Transformer: Sec. 9.4, (92), of the symbol processing paper."""

from __future__ import annotations

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


class SemiFormalExperiment(Experiment[Run, RunOutcome]):
    """A run is one model from one seed."""

    name = "semi_formal"
    paper = "smolensky2024mechanisms"
    settings = Run
    outcome = RunOutcome
    options = StepOptions
    train = staticmethod(train_run)
    report = report
    seeds = 3


EXPERIMENT = SemiFormalExperiment()
