"""LOCM, as macq has it: a peer that learns lifted actions from positive traces and the names of objects.

LOCM (Cresswell, McCluskey and West 2013) gives every object a state machine of its sort. It takes no labels. macq reads
a single trace, so several stand one behind another, with objects of their own.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterable
from typing import Any

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.problem import PlanningError


def learn_with_locm(traces: Iterable[Iterable[GroundAction]]) -> LiftedDomain:
    """What LOCM learns from actions that were done; every object has the type `object`.

    Raises:
        PlanningError: macq is not installed, or its LOCM cannot read these traces.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes in macq's sources
            from macq.extract.locm import LOCM
            from macq.observation import ActionObservation
            from macq.trace import Action, PlanningObject, State, Step
    except ImportError:
        raise PlanningError("LOCM needs macq: pip install macq.") from None

    class OneTrace(list[Any]):
        type = ActionObservation

    observed: list[Any] = []
    arity: dict[str, int] = {}
    for number, trace in enumerate(traces):
        for name, objects in trace:
            arity[name] = len(objects)
            own = [PlanningObject("object", f"{each}@{number}") for each in objects]
            observed.append(ActionObservation(Step(State({}), Action(name, own), len(observed) + 1)))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            learned = LOCM(OneTrace([observed]))
    except SystemExit:  # macq's way to say so
        raise PlanningError(f"LOCM cannot read these traces. {' '.join(said.getvalue().split())}") from None
    except TimeoutError:  # the caller's own limit
        raise
    except Exception as error:  # a bug of macq's: on some traces it raises what it never meant to
        raise PlanningError(f"macq's LOCM fails on these traces, with {error!r}.") from error

    predicates: dict[str, tuple[str, ...]] = {}

    def atoms(fluents: Iterable[Any]) -> frozenset[LiftedAtom]:
        found = set()
        for fluent in fluents:
            places = tuple(place for place in fluent.param_act_inds if place >= 0)  # -1 is LOCM's zero object
            name = f"{fluent.name}-{len(places)}"
            predicates[name] = ("object",) * len(places)
            found.add(LiftedAtom(name, places))
        return frozenset(found)

    actions = [
        LiftedAction(one.name, ("object",) * arity[one.name], atoms(one.precond), atoms(one.add), atoms(one.delete))
        for one in learned.actions
    ]
    return LiftedDomain(predicates, tuple(actions), "locm")
