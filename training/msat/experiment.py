"""M-SAT, MAT and the baseline with and without positions: Figure 3 and Tables 2 and 3 of the paper."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..engine import Experiment, Request, SettingsError, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import PEER, Run


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

    def stages(self, request: Request, /) -> Iterable[Sequence[Run]]:
        """All runs at once; a card has a model of the paper, of this command or done before."""
        (runs,) = super().stages(request)
        done = [outcome.settings for _, outcome in self.finished_under(Path(request.options.output_dir))]
        described = {self.card_key(run) for run in [*runs, *done] if run.model != PEER}
        if any(self.card_key(run) not in described for run in runs):
            raise SettingsError(f"A card is of M-SAT or a baseline of its paper: train --model baseline beside {PEER}.")
        yield runs

    def shares_card(self, settings: Run, /) -> Hashable:
        """A card is of one preset, scenario and kind of components."""
        return settings.preset, settings.scenario, settings.component_prediction


EXPERIMENT = MSATExperiment()
