"""Planning with a domain, hidden or learned, through unified-planning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.models.strips.strips_lifted import LiftedDomain
from hf_mech.planning.problem import PlanningError, StripsProblem, refuse_text, state_after

_COMPLETE = ("pyperplan", "pyperplan-opt")
"""Planners with a complete search, although unified-planning's adapter never reports a proof."""


def plan(
    domain: StripsDomain,
    initial: Iterable[str] | None = None,
    goal: Iterable[str] | None = None,
    planner: str = "pyperplan",
    *,
    after: Sequence[str | int] = (),
    until: Sequence[str | int] = (),
) -> list[str] | None:
    """A sequence of action names that leads from an initial state to a goal.

    Start and goal are propositions, or traces and actions, or both. In a learned domain the propositions have no
    names, and its initial state is unknown; there, `plan(learned, after=["a", "c"], until=["b"])` is a way from the
    state after the trace a, c to a state in which b is possible.

    Args:
        initial: the propositions that are true in the initial state; all others are false. None: unknown, as in
            Definition 1: every proposition counts as true until an action deletes it. Then `after`, the plan, and any
            one of `until` are together a positive trace.
        goal: the propositions to make true.
        planner: the name of a planner of unified-planning.
        after: the actions taken since the initial state, by name or index; the plan begins after them.
        until: actions, by name or index, that are all possible after the plan: their preconditions join the goal.

    Returns:
        The plan, empty if the goal holds already; None if a complete search found none.

    Raises:
        PlanningError: a problem or a lifted domain instead of a domain; an action of `after` that is not possible; a
            single string for a list; neither a goal nor actions to make possible; a planner that is not installed, or
            stopped without an answer.
        StripsError: an action or a proposition that the domain does not have.
    """
    if isinstance(domain, StripsProblem):
        raise PlanningError(
            f"plan() takes a domain, got the problem {domain.domain.name!r}; write "
            "plan(problem.domain, problem.initial, problem.goal)."
        )
    given: Any = domain
    if isinstance(given, LiftedDomain):
        raise PlanningError(
            f"plan() takes a domain over given objects, got the lifted domain {given.name!r}; write "
            "plan(learned.ground(), ...), or domain.ground({type: objects}) first."
        )
    if goal is None and not len(until):
        raise PlanningError(
            f"A plan needs a goal: goal=[propositions to make true], or until=[actions to make possible], some of "
            f"{list(domain.action_names)}."
        )
    wanted = frozenset(refuse_text("goal", goal) or ())
    actions = domain.encode(refuse_text("until", until))
    wanted = wanted.union(*(domain.actions[action].pre for action in actions))
    problem = StripsProblem(domain, state_after(domain, refuse_text("after", after), initial), wanted)
    if problem.goal <= problem.initial:
        return []
    if not problem.goal - problem.initial <= frozenset().union(*(a.add for a in domain.actions)):
        return None  # no action adds it; some planners raise an error for such goals
    try:
        from unified_planning.engines import PlanGenerationResultStatus as Status
        from unified_planning.exceptions import UPNoRequestedEngineAvailableException

        from hf_mech.planning.pddl.write import to_unified_planning
    except ImportError as error:
        raise PlanningError(f"Planning needs unified-planning: pip install 'hf-mech[plan]' ({error}).") from error

    planning_problem, pddl_names = to_unified_planning(problem)
    environment = planning_problem.environment
    try:
        engine = environment.factory.OneshotPlanner(name=planner)
    except UPNoRequestedEngineAvailableException as error:
        raise PlanningError(
            f"The planner {planner!r} is not installed; pip install 'hf-mech[plan]' brings pyperplan. Installed: "
            f"{', '.join(environment.factory.engines)}."
        ) from error
    with engine:
        result = engine.solve(planning_problem)
    if result.plan is not None:
        ours = {pddl: name for name, pddl in pddl_names.items()}
        return [ours[step.action.name] for step in result.plan.actions]
    if result.status == Status.UNSOLVABLE_PROVEN:
        return None
    if result.status == Status.UNSOLVABLE_INCOMPLETELY and planner in _COMPLETE:
        return None
    messages = "; ".join(log.message for log in result.log_messages or [])
    raise PlanningError(f"The planner {planner!r} stopped without an answer: {result.status.name}. {messages}")
