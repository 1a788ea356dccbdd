"""Propositional STRIPS to PDDL, with predicates and actions that take no parameters."""

from __future__ import annotations

from ...models.strips.strips_domain import StripsDomain
from ..problem import StripsProblem
from .unified import to_unified_planning


def write_pddl(problem: StripsProblem | StripsDomain) -> tuple[str, str]:
    """The texts of a PDDL domain and a PDDL problem file, which any PDDL planner reads.

    `stack(a,b)` becomes the name `stack--a--b`; `names.py` has the rule, which `read_pddl` applies backwards, so that
    what is written comes back under its own names. A domain alone is written with every proposition true in the
    beginning and an empty goal.
    """
    from unified_planning.io import PDDLWriter

    if isinstance(problem, StripsDomain):
        problem = StripsProblem(problem, frozenset(problem.propositions))
    planning_problem, _ = to_unified_planning(problem)
    writer = PDDLWriter(planning_problem)
    name = planning_problem.name  # which the writer lengthens
    domain_text = writer.get_domain().replace(f"(domain {name}-domain)", f"(domain {name})")
    problem_text = writer.get_problem().replace(f"(domain {name}-domain)", f"(domain {name})")
    return domain_text, problem_text.replace(f"(problem {name}-problem)", f"(problem {name})")
