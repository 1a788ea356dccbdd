"""Propositional STRIPS to PDDL, with predicates and actions without parameters."""

from __future__ import annotations

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.pddl.unified import to_unified_planning
from hf_mech.planning.problem import StripsProblem


def write_pddl(problem: StripsProblem | StripsDomain) -> tuple[str, str]:
    """The texts of a PDDL domain and a PDDL problem file, readable by any PDDL planner.

    `stack(a,b)` becomes the name `stack--a--b`; `names.py` has the rule. `read_pddl` inverts it, so the original names
    return. A domain without a problem is written with every proposition initially true and an empty goal.
    """
    from unified_planning.io import PDDLWriter

    if isinstance(problem, StripsDomain):
        problem = StripsProblem(problem, frozenset(problem.propositions))
    planning_problem, _ = to_unified_planning(problem)
    writer = PDDLWriter(planning_problem)
    name = planning_problem.name  # the writer lengthens it
    domain_text = writer.get_domain().replace(f"(domain {name}-domain)", f"(domain {name})")
    problem_text = writer.get_problem().replace(f"(:domain {name}-domain)", f"(:domain {name})")
    return domain_text, problem_text.replace(f"(problem {name}-problem)", f"(problem {name})")
