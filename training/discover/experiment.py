"""DISCOVER on templatic generation: Sec. 9.2.1 of the symbol processing paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..engine import Experiment, Request, SettingsError
from . import report
from .run import RunOutcome, test_run
from .settings import Run


class DiscoverExperiment(Experiment[Run, RunOutcome]):
    """A run is one model's hidden states with one seed of the fit."""

    name = "discover"
    paper = "smolensky2024mechanisms"
    settings = Run
    outcome = RunOutcome
    train = staticmethod(test_run)
    report = report

    def stages(self, request: Request) -> Iterable[Sequence[Run]]:
        """All subjects; the learned ones need a checkpoint."""
        for runs in super().stages(request):
            if lacking := [run.subject for run in runs if run.subject != "pargen" and run.checkpoint is None]:
                raise SettingsError(
                    f"The subject {lacking[0]} needs --checkpoint, the folder `model` of a run of train_templatic; "
                    "without one, --subject pargen."
                )
            yield runs


EXPERIMENT = DiscoverExperiment()
