"""A STRIPS problem as unified-planning's `Problem`, for its writer and its planners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hf_mech.planning.pddl.names import encode_name
from hf_mech.planning.problem import StripsProblem


def to_unified_planning(problem: StripsProblem) -> tuple[Any, dict[str, str]]:
    """The problem with fluents and actions without parameters, under PDDL names.

    Returns:
        unified-planning's `Problem`, and a mapping from our action names to PDDL's.
    """
    from unified_planning.environment import Environment
    from unified_planning.model import Fluent, InstantaneousAction, Problem

    domain = problem.domain
    environment = Environment()
    environment.credits_stream = None
    out = Problem(encode_name(domain.name), environment)
    action_names = _pddl_names(domain.action_names, set())
    atom_names = _pddl_names(domain.propositions, set(action_names.values()))
    fluents = {p: Fluent(atom_names[p], environment=environment) for p in domain.propositions}
    for p in domain.propositions:
        out.add_fluent(fluents[p], default_initial_value=p in problem.initial)
        if p in problem.goal:
            out.add_goal(fluents[p])
    for a in domain.actions:
        action = InstantaneousAction(action_names[a.name], _env=environment)
        for p in domain.propositions:
            if p in a.pre:
                action.add_precondition(fluents[p])
            if p in a.add | a.delete:
                action.add_effect(fluents[p], p in a.add)
        out.add_action(action)
    return out, action_names


def _pddl_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A unique PDDL name for each; adds them to `taken`."""
    out: dict[str, str] = {}
    for name in names:
        out[name] = encode_name(name, taken)
        taken.add(out[name])
    return out
