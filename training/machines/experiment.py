"""Every program of the package and Turing machines, in the three machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..engine import Experiment, Options, Request
from . import report
from .run import Trials, TrialsOutcome, digest_of, run_trials


class MachinesExperiment(Experiment[Trials, TrialsOutcome]):
    """A run is one program; nothing is trained."""

    name = "machines"
    settings = Trials
    outcome = TrialsOutcome
    preset = "usual"
    train = staticmethod(run_trials)
    report = report

    def stages(self, request: Request[Options]) -> Iterable[Sequence[Trials]]:
        """One after another; the digest tells outcomes of an earlier text of a program."""
        yield [Trials.of(program_digest=digest_of(given["task"]), **given) for given in request.combinations()]


EXPERIMENT = MachinesExperiment()
