"""Domains of past planning competitions that typed STRIPS without negation can say, and instances of two sizes.

    from hf_mech.planning.lifted.domains import DOMAINS, instance

    problem = instance("ferry", "big", seed=0)

The domains are PDDL files in `hf_mech/planning/domains/`, with the semantics of the competitions'. What differs:

- gripper, logistics: no move to where one is, which the competitions' allow.
- parking: no car behind itself.
- rovers: effects that delete and add the same atom are left out.
- sokoban: one action pushes, over three cells in a line; the competition's asks for a direction, and whether the cell
  is a goal.
- floortile, freecell, driverlog: some names; unified-planning asks for different ones of types, predicates and actions.

Left out are childsnack and tyreworld, whose actions name constants.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips.strips_lifted import LiftedDomain
from hf_mech.planning.lifted.draft import Draft
from hf_mech.planning.lifted.instances import GENERATORS
from hf_mech.planning.lifted.pddl import LiftedProblem, read_lifted_pddl
from hf_mech.planning.problem import PlanningError

DEVELOPMENT = ("blocksworld", "ferry", "gripper", "miconic", "logistics", "hanoi", "driverlog")
"""The domains on which learners are developed; figures are shown on the others."""

DOMAINS: tuple[str, ...] = tuple(GENERATORS)
"""All domains, those of `DEVELOPMENT` first."""

SIZES = ("small", "big")
"""The sizes of instances; a big one has at least twice the objects of the types that matter."""

_FOLDER = Path(__file__).parents[1] / "domains"


@cache
def lifted_domain(name: str) -> LiftedDomain:
    """One of `DOMAINS`. Raises PlanningError for another name."""
    if name not in DOMAINS:
        raise PlanningError(f"There is no lifted domain {name!r}; choose one of {', '.join(DOMAINS)}.")
    return read_lifted_pddl(_FOLDER / name / "domain.pddl")


@cache
def instance(name: str, size: str = "small", seed: int = 0) -> LiftedProblem:
    """An instance of one of `DOMAINS`; the same one for the same arguments.

    Args:
        name: of the domain.
        size: one of `SIZES`.
        seed: 0 or more; draws the initial state and the static facts.

    Raises:
        PlanningError: an unknown name or size, or a seed below 0.
    """
    domain = lifted_domain(name)
    if size not in SIZES or seed < 0:
        raise PlanningError(
            f"An instance has a size, one of {', '.join(SIZES)}, and a seed, 0 or more, got {size!r}, {seed!r}."
        )
    draft = Draft(size == "big", Die(seed, (DOMAINS.index(name), SIZES.index(size))))
    GENERATORS[name](draft)
    objects = {type_: tuple(own) for type_, own in draft.objects.items()}
    return LiftedProblem(domain, objects, frozenset(draft.initial), name=f"{name}-{size}-{seed}")
