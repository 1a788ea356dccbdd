"""Every program of the package and Turing machines, in the three machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from hf_mech.hub.environment import usable_cores

from ..engine import Experiment, Options, Request
from . import report
from .run import Trials, TrialsOutcome, digest_of, run_trials


class MachinesExperiment(Experiment[Trials, TrialsOutcome]):
    """A run is one program; nothing is trained."""

    name = "machines"
    paper = "smolensky2024mechanisms"
    settings = Trials
    outcome = TrialsOutcome
    preset = "usual"
    train = staticmethod(run_trials)
    report = report

    def stages(self, request: Request[Options]) -> Iterable[Sequence[Trials]]:
        """One after another; the digest tells outcomes of an earlier text of a program."""
        if (request.options.jobs or usable_cores()) == 1:
            torch.set_num_threads(1)
        yield [Trials.of(program_digest=digest_of(given["task"]), **given) for given in request.combinations()]


EXPERIMENT = MachinesExperiment()
