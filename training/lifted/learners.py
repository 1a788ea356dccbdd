"""Who learns from a log: `learn_lifted_domain`, the plain alternation test, and macq's LOCM."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hf_mech.models.strips.strips_lifted import LiftedDomain
from hf_mech.planning.lifted.learning import learn_lifted_domain
from hf_mech.planning.locm import learn_with_locm
from hf_mech.planning.problem import PlanningError

from .alternation import learn_by_alternation
from .data import Log
from .settings import Cell


@dataclass(frozen=True)
class Learned:
    """What a learner made of a log.

    Attributes:
        domain: None: the learner failed.
        exceptions: the steps that the domain does not explain, where the learner counts them.
        note: why it failed, or what it left out.
    """

    domain: LiftedDomain | None
    exceptions: int | None = None
    note: str | None = None


def learn(cell: Cell, log: Log) -> Learned:
    """The domain that the cell's learner finds. LOCM and the alternation test get no failed actions."""
    if cell.learner == "code":
        labels = log.labels if any(map(any, log.labels)) else None
        learned = learn_lifted_domain(log.traces, labels, progress=False)
        return Learned(learned.domain, len(learned.exceptions))
    if cell.learner == "alternation":
        domain, cut = learn_by_alternation(log.done, cell.limit)
        return Learned(domain, note="some sets of patterns were left out" if cut else None)
    try:
        with time_limit(cell.limit):
            return Learned(learn_with_locm(log.done))
    except PlanningError as error:
        return Learned(None, note=str(error))
    except TimeoutError:
        return Learned(None, note=f"no domain after {cell.limit} s")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in its block after so many seconds; only in the main thread, and never on Windows."""
    if sys.platform == "win32":  # which has no alarm
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
