"""Lifted domains and problems as PDDL: read with unified-planning, written as text.

A `LiftedDomain` has positive preconditions only. `(not (= ?x ?y))`, the one negation that competition domains use
everywhere, becomes the static predicate `different`, and is written as `(not (= ...))` again. Any other negative
condition is refused; its complement needs a predicate of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain, ground_name
from hf_mech.planning.pddl.lifted import refuse_unsupported, unsupported, without_numbers
from hf_mech.planning.pddl.read import LOCK, Source, parse
from hf_mech.planning.pddl.write import decode_name, encode_name
from hf_mech.planning.problem import PlanningError

DIFFERENT = "different"
"""The static predicate for `(not (= ?x ?y))`: true of any two objects that are not the same."""

GroundAtom = tuple[str, tuple[str, ...]]
"""A predicate and its objects: `("on", ("b1", "b2"))`."""


@dataclass(frozen=True)
class LiftedProblem:
    """An instance of a lifted domain.

    Attributes:
        domain: the lifted domain.
        objects: the objects of each type, each under its most special type.
        initial: the atoms that are true at first; all others are false. Those of `different` are understood.
        goal: the atoms to make true.
        name: of the instance.

    Raises:
        PlanningError: a type, a predicate or an object that is not declared, or an object of two types.
    """

    domain: LiftedDomain
    objects: Mapping[str, tuple[str, ...]]
    initial: frozenset[GroundAtom]
    goal: frozenset[GroundAtom] = frozenset()
    name: str = "problem"

    def __post_init__(self) -> None:
        object.__setattr__(self, "objects", {type_: tuple(own) for type_, own in self.objects.items()})
        types = type_names(self.domain)
        if unknown := sorted(set(self.objects) - set(types)):
            raise PlanningError(f"Domain {self.domain.name!r} has no types {unknown}; it has {types}.")
        of = self.type_of
        if len(of) < sum(map(len, self.objects.values())):
            raise PlanningError(f"An object must stand once, under its most special type, got {dict(self.objects)}.")
        for kind in ("initial", "goal"):
            atoms = frozenset((predicate, tuple(objects)) for predicate, objects in getattr(self, kind))
            object.__setattr__(self, kind, atoms)
            for predicate, objects in sorted(atoms):
                wanted = self.domain.predicates.get(predicate)
                if (
                    wanted is None
                    or len(wanted) != len(objects)
                    or any(
                        o not in of or (t != "object" and t not in self.domain.types_above(of[o]))
                        for o, t in zip(objects, wanted, strict=True)
                    )
                ):
                    expected = "no such predicate" if wanted is None else f"({', '.join(wanted)})"
                    raise PlanningError(
                        f"The atom {ground_name(predicate, objects)!r} of {kind} does not fit domain "
                        f"{self.domain.name!r}: it has {expected}, and the objects' types are "
                        f"{[of.get(o, 'undeclared') for o in objects]}."
                    )

    @property
    def type_of(self) -> dict[str, str]:
        """The type of each object."""
        return {each: type_ for type_, own in self.objects.items() for each in own}

    @cached_property
    def facts(self) -> frozenset[GroundAtom]:
        """The true static atoms, those of `different` included; for `LiftedDomain.ground`."""
        facts = {atom for atom in self.initial if atom[0] in self.domain.static}
        if DIFFERENT in self.domain.predicates:
            facts |= {(DIFFERENT, pair) for pair in permutations(self.type_of, 2)}
        return frozenset(facts)


def type_names(domain: LiftedDomain) -> list[str]:
    """Every type of a domain, sorted."""
    used = {type_ for types in domain.predicates.values() for type_ in types}
    used |= {type_ for action in domain.actions for type_ in action.parameters}
    return sorted(used | set(domain.supertypes) | set(domain.supertypes.values()))


# ----------------------------------------------------------------------------------------------------------------- read


def read_lifted_pddl(domain: str | Path) -> LiftedDomain:
    """Read a PDDL domain without grounding it.

    Action costs are dropped. `(not (= ?x ?y))` becomes the static predicate `different`.

    Args:
        domain: a path, or the PDDL itself, as for `read_pddl`.

    Raises:
        PlanningError: a file that cannot be read, a text that does not parse, or a feature that a `LiftedDomain` does
            not have: other negative or disjunctive conditions, quantifiers, conditional effects, constants, numbers.
    """
    source = Source.of(domain, "domain")
    with LOCK:
        parsed = parse(source)
        refuse_unsupported(parsed)
        parsed, _ = without_numbers(parsed)
        if parsed.all_objects:
            names = [each.name for each in parsed.all_objects]
            raise unsupported("The domain", f"the constants {names}", "Give the actions parameters for them.")
        parents = {t.name: t.father.name for t in parsed.user_types if t.father is not None}
        predicates = {f.name: _types(f.signature) for f in parsed.fluents if f.type.is_bool_type()}
        actions = [_action(action) for action in parsed.actions]
    if any(atom.predicate == DIFFERENT for action in actions for atom in action.pre) and DIFFERENT in predicates:
        raise PlanningError(f"The domain has a predicate {DIFFERENT!r}, which stands for (not (= ?x ?y)); rename it.")
    if any(atom.predicate == DIFFERENT for action in actions for atom in action.pre):
        predicates[DIFFERENT] = ("object", "object")
    return _decoded(LiftedDomain(predicates, tuple(actions), parsed.name or "domain", parents))


def _types(variables: Iterable[Any]) -> tuple[str, ...]:
    return tuple(variable.type.name for variable in variables)


def _action(action: Any) -> LiftedAction:
    where, places = f"Action {action.name!r}", {p.name: place for place, p in enumerate(action.parameters)}

    def atom(expression: Any) -> LiftedAtom:
        if not (expression.is_fluent_exp() and all(arg.is_parameter_exp() for arg in expression.args)):
            raise unsupported(where, f"the condition {expression}", "Keep to positive conditions on predicates.")
        found = tuple(places[arg.parameter().name] for arg in expression.args)
        return LiftedAtom(expression.fluent().name, found)

    def conditions(expression: Any) -> Iterator[LiftedAtom]:
        if expression.is_and():
            for part in expression.args:
                yield from conditions(part)
        elif expression.is_not() and expression.arg(0).is_equals():
            yield LiftedAtom(DIFFERENT, tuple(places[arg.parameter().name] for arg in expression.arg(0).args))
        elif not expression.is_true():
            yield atom(expression)

    changes: dict[bool, set[LiftedAtom]] = {True: set(), False: set()}
    for effect in action.effects:
        if effect.is_conditional() or effect.is_forall():
            raise unsupported(where, "a conditional or quantified effect", "Write one action for each case.")
        if not effect.value.is_bool_constant():
            raise unsupported(where, f"the effect {effect}", "Keep to adding and deleting atoms.")
        changes[effect.value.bool_constant_value()].add(atom(effect.fluent))
    pre = frozenset(found for condition in action.preconditions for found in conditions(condition))
    return LiftedAction(
        action.name, _types(action.parameters), pre, frozenset(changes[True]), frozenset(changes[False])
    )


def _decoded(domain: LiftedDomain) -> LiftedDomain:
    """The domain under the names that `to_pddl` encoded."""

    def atoms(own: Iterable[LiftedAtom]) -> frozenset[LiftedAtom]:
        return frozenset(LiftedAtom(decode_name(name), places) for name, places in own)

    def types(own: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(decode_name, own))

    return LiftedDomain(
        {decode_name(name): types(own) for name, own in domain.predicates.items()},
        tuple(
            LiftedAction(decode_name(a.name), types(a.parameters), atoms(a.pre), atoms(a.add), atoms(a.delete))
            for a in domain.actions
        ),
        decode_name(domain.name),
        {decode_name(type_): decode_name(parent) for type_, parent in domain.supertypes.items()},
    )


# ---------------------------------------------------------------------------------------------------------------- write


def to_pddl(domain: LiftedDomain) -> str:
    """A PDDL domain that `read_lifted_pddl` and any PDDL planner read; names as `encode_name` writes them."""
    names = _Names(domain)
    types = names.types
    equal = DIFFERENT in domain.predicates
    requirements = ":strips :typing" + (" :negative-preconditions :equality" if equal else "")
    lines = [f"(define (domain {encode_name(domain.name)})", f"  (:requirements {requirements})"]
    if declared := [t for t in types if t != "object"]:
        parents = {t: types[domain.supertypes.get(t, "object")] for t in declared}
        lines += ["  (:types", *(f"    {types[t]} - {parents[t]}" for t in declared), "  )"]
    predicates = {name: own for name, own in domain.predicates.items() if name != DIFFERENT}
    shown = [
        _listed(names.predicates[name], [f"?x{i} - {types[t]}" for i, t in enumerate(own)])
        for name, own in predicates.items()
    ]
    lines += ["  (:predicates", *(f"    {each}" for each in shown), "  )"]
    for action in domain.actions:
        variables = [f"?x{place}" for place in range(len(action.parameters))]
        typed = [f"{variable} - {types[t]}" for variable, t in zip(variables, action.parameters, strict=True)]

        def said(atom: LiftedAtom, variables: Sequence[str] = variables) -> str:
            predicate, objects = atom.ground(variables)
            if predicate == DIFFERENT:
                return f"(not {_listed('=', objects)})"
            return _listed(names.predicates[predicate], objects)

        effects = [said(atom) for atom in sorted(action.add)]
        effects += [f"(not {said(atom)})" for atom in sorted(action.delete)]
        lines += [
            f"  (:action {names.actions[action.name]}",
            f"    :parameters ({' '.join(typed)})",
            f"    :precondition {_listed('and', [said(atom) for atom in sorted(action.pre)])}",
            f"    :effect {_listed('and', effects)})",
        ]
    return "\n".join([*lines, ")"]) + "\n"


def problem_to_pddl(problem: LiftedProblem) -> str:
    """A PDDL problem of the domain that `to_pddl` writes."""
    domain = problem.domain
    names = _Names(domain)
    objects = names.add(sorted(problem.type_of))
    typed = [f"{' '.join(objects[o] for o in own)} - {names.types[t]}" for t, own in problem.objects.items() if own]

    def atoms(own: Iterable[GroundAtom]) -> list[str]:
        return [_listed(names.predicates[p], [objects[o] for o in of]) for p, of in sorted(own) if p != DIFFERENT]

    lines = [f"(define (problem {encode_name(problem.name)})", f"  (:domain {encode_name(domain.name)})"]
    lines += ["  (:objects", *(f"    {each}" for each in typed), "  )"]
    lines += ["  (:init", *(f"    {each}" for each in atoms(problem.initial)), "  )"]
    lines += [f"  (:goal {_listed('and', atoms(problem.goal))})", ")"]
    return "\n".join(lines) + "\n"


class _Names:
    """The PDDL names of types, predicates and actions; unified-planning refuses two that are the same."""

    def __init__(self, domain: LiftedDomain) -> None:
        self.taken: set[str] = {"object"}
        self.types = {"object": "object"} | self.add(t for t in type_names(domain) if t != "object")
        self.predicates = self.add(domain.predicates)  # nearly every domain has a predicate `at`, a keyword elsewhere
        self.actions = self.add(action.name for action in domain.actions)

    def add(self, own: Iterable[str]) -> dict[str, str]:
        """A PDDL name for each of ours."""
        named: dict[str, str] = {}
        for name in own:
            plain = name == "at" and name not in self.taken
            named[name] = name if plain else encode_name(name, self.taken)
            self.taken.add(named[name])
        return named


def _listed(head: str, parts: Iterable[str]) -> str:
    return f"({' '.join([head, *parts])})"
