"""Planning with a domain, hidden or learned, through unified-planning."""

from __future__ import annotations

from collections.abc import Iterable

from ..models.strips.strips_domain import StripsDomain
from ..models.strips.strips_errors import StripsError
from .problem import StripsProblem

_COMPLETE = ("pyperplan", "pyperplan-opt")
"""Planners with a complete search, although unified-planning's adapter never reports a proof."""


class PlannerError(StripsError):
    """The planner is not installed, or stopped without an answer."""


def plan(
    domain: StripsDomain, initial: Iterable[str], goal: Iterable[str], planner: str = "pyperplan"
) -> list[str] | None:
    """A sequence of action names that leads from the propositions `initial` to a state with all of `goal`.

    Args:
        initial: the propositions that are true in the initial state; all others are false.
        goal: the propositions to make true.
        planner: the name of a planner of unified-planning.

    Returns:
        The plan, empty if the goal holds already; None if a complete search found none.

    Raises:
        DomainError: a proposition that the domain does not have.
        PlannerError: the planner is not installed, or stopped without an answer.
    """
    problem = StripsProblem(domain, frozenset(initial), frozenset(goal))
    if problem.goal <= problem.initial:
        return []
    if not problem.goal - problem.initial <= frozenset().union(*(a.add for a in domain.actions)):
        return None  # no action adds it; some planners raise an error for such goals
    try:
        from unified_planning.engines import PlanGenerationResultStatus as Status
        from unified_planning.exceptions import UPNoRequestedEngineAvailableException

        from .pddl.unified import to_unified_planning
    except ImportError as error:
        raise PlannerError(f"Planning needs unified-planning: pip install hf_mech[plan] ({error}).") from error

    planning_problem, pddl_names = to_unified_planning(problem)
    environment = planning_problem.environment
    try:
        engine = environment.factory.OneshotPlanner(name=planner)
    except UPNoRequestedEngineAvailableException as error:
        raise PlannerError(
            f"The planner {planner!r} is not installed; pip install hf_mech[plan] brings pyperplan. Installed: "
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
    raise PlannerError(f"The planner {planner!r} stopped without an answer: {result.status.name}. {messages}")
