"""Nested function evaluation by a program and by learned models."""

from __future__ import annotations

from collections.abc import Hashable

from ..engine import Experiment, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import Run


class NestedFunctionExperiment(Experiment[Run, RunOutcome]):
    """A run is one model on one configuration from one seed."""

    name = "nested_functions"
    paper = "smolensky2024mechanisms"
    settings = Run
    outcome = RunOutcome
    options = StepOptions
    train = staticmethod(train_run)
    report = report

    def shares_card(self, settings: Run) -> Hashable:
        """The program's runs share a card, and the learned models' of a preset."""
        return settings.model, settings.preset


EXPERIMENT = NestedFunctionExperiment()
