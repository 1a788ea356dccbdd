"""Lifted domains learned from logs, judged in bigger instances."""

from __future__ import annotations

from collections.abc import Hashable

from ..engine import Experiment
from . import report
from .run import CellOutcome, run_cell
from .settings import Cell


class LiftedExperiment(Experiment[Cell, CellOutcome]):
    """A run is one learner on one log; all runs share a card."""

    name = "lifted"
    paper = "nunezmolina2025strips"
    settings = Cell
    outcome = CellOutcome
    unit = "cells"
    preset = "usual"
    train = staticmethod(run_cell)
    report = report

    def shares_card(self, settings: Cell) -> Hashable:
        return self.name


EXPERIMENT = LiftedExperiment()
