"""One cell: learn from its log, judge on walks and contradictions in bigger instances."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedDomain

from ..engine import Job, Outcome
from .data import judges_of, log_of
from .learners import learn
from .models import model_figures
from .settings import Cell


@dataclass(kw_only=True)
class CellOutcome(Outcome[Cell]):
    """The outcome of a cell; `seconds` are those of learning.

    Attributes:
        actions: in the log.
        note: why the learner failed, or what it left out.
        domain: what it learned; None: it failed.
        predicates, preconditions: of the domain.
        exceptions: the steps that the domain does not explain, where the learner counts them.
        walks_right: the share of test walks whose verdicts are all 0.
        contradictions_right: the share of contradictions whose verdicts are 0, and 1 at the end.
        model: the figures of the model, if they were asked for.
    """

    actions: int
    note: str | None
    domain: dict[str, Any] | None
    predicates: int
    preconditions: int
    exceptions: int | None
    walks_right: float
    contradictions_right: float
    model: dict[str, float] | None


def run_cell(cell: Cell, job: Job) -> CellOutcome:
    """Learns in one go."""
    log = log_of(cell)
    began = time.perf_counter()
    learned = learn(cell, log)
    seconds = time.perf_counter() - began
    domain, judges = learned.domain, judges_of(cell.domain, cell.seed, cell.walks)
    walks = contradictions = 0.0
    if domain is not None:
        walks = share_right(domain, judges.walks, last=0)
        contradictions = share_right(domain, judges.contradictions, last=1)
    job.tracker.log({"test/walks_right": walks, "test/contradictions_right": contradictions}, 0)
    return CellOutcome(
        settings=cell,
        origin=job.origin,
        seconds=seconds,
        actions=sum(map(len, log.traces)),
        note=learned.note,
        domain=None if domain is None else domain.to_dict(),
        predicates=0 if domain is None else len(domain.predicates),
        preconditions=0 if domain is None else sum(len(action.pre) for action in domain.actions),
        exceptions=learned.exceptions,
        walks_right=walks,
        contradictions_right=contradictions,
        model=model_figures(cell, domain) if domain is not None and cell.models else None,
    )


def share_right(domain: LiftedDomain, traces: Sequence[Sequence[GroundAction]], last: int) -> float:
    """The share of traces with the verdicts 0, ..., 0, last. A trace with an action that the domain lacks is wrong."""
    return sum(is_right(domain, trace, last) for trace in traces) / len(traces)


def is_right(domain: LiftedDomain, trace: Sequence[GroundAction], last: int) -> bool:
    """Whether `LiftedDomain.labels` are 0, ..., 0, last; ends at the first wrong one."""
    falsified: set[tuple[str, tuple[str, ...]]] = set()
    for position, action in enumerate(trace, start=1):
        if (schema := domain.by_name.get(action.name)) is None:
            return False
        contradicts = any(atom.ground(action.objects) in falsified for atom in schema.pre)
        if contradicts != (position == len(trace) and last == 1):
            return False
        domain.advance(falsified, action)
    return True
