"""Who learns from a log: `learn_lifted_domain`, the plain alternation test, and macq's LOCM."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.lifted.learning import learn_lifted_domain

from ..engine import SettingsError
from ..strips.locm import locm_schemas
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
        return Learned(domain, note="some sets of patterns were not tried" if cut else None)
    try:
        with time_limit(cell.limit):
            return Learned(locm_domain(log.done))
    except SettingsError as error:
        return Learned(None, note=str(error))
    except TimeoutError:
        return Learned(None, note=f"no domain after {cell.limit} s")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in its block after so many seconds; only in the main thread."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def locm_domain(traces: Sequence[Sequence[GroundAction]]) -> LiftedDomain:
    """What LOCM learns, with its sorts left out.

    Raises:
        SettingsError: macq is not installed, or its LOCM cannot read these traces.
    """
    schemas = locm_schemas([[(one.name, one.objects) for one in trace] for trace in traces])
    arity = {one.name: len(one.objects) for trace in traces for one in trace}
    predicates: dict[str, tuple[str, ...]] = {}

    def atoms(fluents: Any) -> frozenset[LiftedAtom]:
        found = set()
        for fluent in fluents:
            places = tuple(place for place in fluent.param_act_inds if place >= 0)  # -1 is LOCM's zero object
            name = f"{fluent.name}-{len(places)}"
            predicates[name] = ("object",) * len(places)
            found.add(LiftedAtom(name, places))
        return frozenset(found)

    actions = tuple(
        LiftedAction(one.name, ("object",) * arity[one.name], atoms(one.precond), atoms(one.add), atoms(one.delete))
        for one in schemas
    )
    return LiftedDomain(predicates, actions, "locm")
