"""The ground actions of an instance, without trying every combination of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedAction, LiftedDomain
from hf_mech.planning.lifted.pddl import GroundAtom, LiftedProblem


def ground_actions(problem: LiftedProblem) -> Iterator[GroundAction]:
    """What `LiftedDomain.ground_actions` yields, in the same order, without trying every combination of objects."""
    domain = problem.domain
    of_type: dict[str, list[str]] = {"object": [each for own in problem.objects.values() for each in own]}
    for type_, own in problem.objects.items():
        for above in domain.types_above(type_):
            if above != "object":
                of_type.setdefault(above, []).extend(own)
    for schema in domain.actions:
        yield from _groundings(domain, schema, of_type, problem.facts)


def _groundings(
    domain: LiftedDomain, schema: LiftedAction, of_type: Mapping[str, Sequence[str]], facts: frozenset[GroundAtom]
) -> Iterator[GroundAction]:
    """The groundings of a schema; a static precondition is checked as soon as its objects are chosen."""
    static = [atom for atom in schema.pre if atom.predicate in domain.static]
    checks = [[atom for atom in static if max(atom.places, default=0) == i] for i in range(len(schema.parameters))]
    if not schema.parameters:
        if all(atom.ground(()) in facts for atom in static):
            yield GroundAction(schema.name)
        return

    def extended(chosen: tuple[str, ...]) -> Iterator[GroundAction]:
        place = len(chosen)
        for each in of_type.get(schema.parameters[place], ()):
            longer = (*chosen, each)
            if all(atom.ground(longer) in facts for atom in checks[place]):
                if place + 1 == len(schema.parameters):
                    yield GroundAction(schema.name, longer)
                else:
                    yield from extended(longer)

    yield from extended(())
