"""Lifted STRIPS domains: actions with typed parameters, and Definition 1 for traces over any objects."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from .strips_domain import StripsAction, StripsDomain, StripsError


class GroundAction(NamedTuple):
    """An action and its objects: `GroundAction("stack", ("b1", "b2"))`."""

    name: str
    objects: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ground_name(self.name, self.objects)


class LiftedAtom(NamedTuple):
    """A predicate of some of an action's parameters: `LiftedAtom("on", (0, 1))` is on(first, second)."""

    predicate: str
    places: tuple[int, ...] = ()

    def ground(self, objects: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The predicate, and the objects that stand at the places."""
        return self.predicate, tuple(objects[place] for place in self.places)


@dataclass(frozen=True)
class LiftedAction:
    """An action schema: the types of its parameters, and three sets of atoms over their places."""

    name: str
    parameters: tuple[str, ...] = ()
    pre: frozenset[LiftedAtom] = frozenset()
    add: frozenset[LiftedAtom] = frozenset()
    delete: frozenset[LiftedAtom] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(self.parameters))
        for kind in ("pre", "add", "delete"):
            atoms = frozenset(LiftedAtom(name, tuple(places)) for name, places in getattr(self, kind))
            object.__setattr__(self, kind, atoms)


@dataclass(frozen=True)
class LiftedDomain:
    """Predicates and actions over typed objects; with objects it becomes a `StripsDomain`.

    Preconditions are positive, as in the paper: what must be false has a predicate of its own for its complement. An
    atom that a ground action both adds and deletes (two parameters may be one object) is added, as in PDDL.

    Args:
        predicates: the types of each predicate's arguments, by its name.
        actions: the action schemas.
        name: of the domain.
        supertypes: the parent of each type that has one.

    Raises:
        StripsError: an action that names an unknown predicate, a place that it does not have, or a name used twice.
    """

    predicates: Mapping[str, tuple[str, ...]]
    actions: tuple[LiftedAction, ...]
    name: str = "domain"
    supertypes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "predicates", {name: tuple(types) for name, types in self.predicates.items()})
        object.__setattr__(self, "actions", tuple(self.actions))
        names = [action.name for action in self.actions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise StripsError(f"Domain {self.name!r}: action names must be unique, got {twice} more than once.")
        for action in self.actions:
            for atom in action.pre | action.add | action.delete:
                types = self.predicates.get(atom.predicate)
                if types is None:
                    raise StripsError(
                        f"Action {action.name!r} of domain {self.name!r} uses the predicate {atom.predicate!r} that "
                        f"the domain does not declare; it declares {list(self.predicates)}."
                    )
                if len(types) != len(atom.places) or not all(0 <= p < len(action.parameters) for p in atom.places):
                    raise StripsError(
                        f"Action {action.name!r} of domain {self.name!r}: {atom.predicate!r} takes {len(types)} of its "
                        f"{len(action.parameters)} parameters, got the places {atom.places}."
                    )

    # ------------------------------------------------------------------------------------------------- what it says

    @cached_property
    def by_name(self) -> dict[str, LiftedAction]:
        """The action schemas by name."""
        return {action.name: action for action in self.actions}

    @cached_property
    def static(self) -> frozenset[str]:
        """The predicates that no action changes."""
        changed = {atom.predicate for action in self.actions for atom in action.add | action.delete}
        return frozenset(self.predicates) - changed

    def types_above(self, type_: str) -> list[str]:
        """The type and its ancestors."""
        found = [type_]
        while (parent := self.supertypes.get(found[-1])) is not None:
            found.append(parent)
        return found

    # ------------------------------------------------------------- Definition 1: consistency without an initial state

    def read(self, action: Any, position: int = 0) -> GroundAction:
        """A ground action of this domain, see `parse_action`. Raises StripsError: unknown, or too many objects."""
        ground = parse_action(action, position)
        schema = self.by_name.get(ground.name)
        if schema is None:
            raise StripsError(
                f"Unknown action {ground.name!r} at position {position}; domain {self.name!r} has "
                f"{', '.join(self.by_name)}."
            )
        if len(schema.parameters) != len(ground.objects):
            raise StripsError(
                f"Action {str(ground)!r} at position {position}: {ground.name!r} takes {len(schema.parameters)} "
                f"objects ({', '.join(schema.parameters)}), got {len(ground.objects)}."
            )
        return ground

    def missing(self, falsified: frozenset[Any] | set[Any], action: GroundAction) -> list[tuple[str, tuple[str, ...]]]:
        """The preconditions of a ground action that are known to be false."""
        atoms = (atom.ground(action.objects) for atom in self.by_name[action.name].pre)
        return sorted(atom for atom in atoms if atom in falsified)

    def advance(self, falsified: set[Any], action: GroundAction) -> None:
        """Updates the atoms that are known to be false by one more action, in place."""
        schema = self.by_name[action.name]
        falsified.update(atom.ground(action.objects) for atom in schema.delete)
        falsified.difference_update(atom.ground(action.objects) for atom in schema.add)

    def labels(self, trace: Iterable[Any], failed: Sequence[int] | None = None) -> list[int]:
        """Y(i) of Eq. 6 for every position: 1 where a precondition was last deleted, else 0.

        Args:
            trace: ground actions, as `parse_action` takes them, over any objects.
            failed: 1 where the action is known to have failed, so that it changed nothing; None: the trace does not
                tell, and every action counts as done, as in the paper.
        """
        falsified: set[Any] = set()
        out = []
        for position, given in enumerate(trace):
            action = self.read(given, position)
            out.append(int(bool(self.missing(falsified, action))))
            if failed is None or not failed[position]:
                self.advance(falsified, action)
        return out

    def next_actions(
        self,
        trace: Sequence[Any],
        objects: Mapping[str, Iterable[str]],
        facts: Iterable[Any] | None = None,
        failed: Sequence[int] | None = None,
    ) -> list[str]:
        """The names of the ground actions that may follow a trace; none after a negative trace.

        Args:
            trace, failed: as for `labels`. A failed action may be one that is not possible.
            objects, facts: as for `ground_actions`.
        """
        falsified: set[Any] = set()
        for position, given in enumerate(trace):
            action, lost = self.read(given, position), failed is not None and failed[position]
            if not lost:
                if self.missing(falsified, action):
                    return []
                self.advance(falsified, action)
        return [str(each) for each in self.ground_actions(objects, facts) if not self.missing(falsified, each)]

    # ----------------------------------------------------------------------------------------------------- grounding

    def ground_actions(
        self, objects: Mapping[str, Iterable[str]], facts: Iterable[Any] | None = None
    ) -> Iterator[GroundAction]:
        """Every action with objects of its types whose static preconditions are among the facts.

        Args:
            objects: the objects of each type, each under its most special type.
            facts: true static atoms, `"smaller(d1,d2)"` or `("smaller", ("d1", "d2"))`; None: all are true.
        """
        true = None if facts is None else {_atom(fact) for fact in facts}
        of_type: dict[str, list[str]] = {}
        for type_, own in objects.items():
            for above in self.types_above(type_):
                of_type.setdefault(above, []).extend(own)
        for action in self.actions:
            static = [atom for atom in action.pre if atom.predicate in self.static]
            for choice in itertools.product(*(of_type.get(type_, []) for type_ in action.parameters)):
                if true is None or all(atom.ground(choice) in true for atom in static):
                    yield GroundAction(action.name, choice)

    def ground(self, objects: Mapping[str, Iterable[str]], facts: Iterable[Any] | None = None) -> StripsDomain:
        """The propositional domain over these objects, without the static predicates.

        Args:
            objects, facts: as for `ground_actions`.

        Raises:
            StripsError: no action has objects of its types.
        """
        propositions: dict[str, None] = {}
        actions = []
        for each in self.ground_actions({type_: list(own) for type_, own in objects.items()}, facts):
            schema = self.by_name[each.name]

            def named(atoms: Iterable[LiftedAtom], each: GroundAction = each) -> list[str]:
                dynamic = sorted(atom for atom in atoms if atom.predicate not in self.static)
                return [ground_name(*atom.ground(each.objects)) for atom in dynamic]

            pre, add, delete = named(schema.pre), named(schema.add), named(schema.delete)
            propositions.update(dict.fromkeys([*pre, *add, *delete]))
            actions.append(StripsAction(str(each), frozenset(pre), frozenset(add), frozenset(delete) - frozenset(add)))
        if not actions:
            raise StripsError(
                f"Domain {self.name!r} has no action over the objects {dict(objects)}; give objects for the types "
                f"{sorted({t for action in self.actions for t in action.parameters})}."
            )
        return StripsDomain(tuple(propositions), tuple(actions), self.name)

    # ---------------------------------------------------------------------------------------------- as data, as text

    def to_dict(self) -> dict[str, Any]:
        """The domain as JSON-ready data."""

        def atoms(own: frozenset[LiftedAtom]) -> list[list[Any]]:
            return [[atom.predicate, list(atom.places)] for atom in sorted(own)]

        return {
            "name": self.name,
            "supertypes": dict(self.supertypes),
            "predicates": {name: list(types) for name, types in self.predicates.items()},
            "actions": [
                {"name": a.name, "parameters": list(a.parameters)}
                | {"pre": atoms(a.pre), "add": atoms(a.add), "del": atoms(a.delete)}
                for a in self.actions
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LiftedDomain:
        """The inverse of `to_dict`. Raises StripsError if a key is missing or has a wrong value."""
        try:
            actions = tuple(
                LiftedAction(a["name"], a["parameters"], a["pre"], a["add"], a["del"]) for a in data["actions"]
            )
            return cls(data["predicates"], actions, data.get("name", "domain"), data.get("supertypes", {}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, StripsError):
                raise
            raise StripsError(
                "A lifted domain is a dictionary with predicates (name: types) and actions (name, parameters; pre, "
                f"add, del: lists of [predicate, places]), as to_dict gives it: {error!r}."
            ) from error

    def __str__(self) -> str:
        """As in Figure 1 of the paper, with parameters."""
        lines = [f"Domain {self.name}", "Predicates:"]
        lines += [f"  {ground_name(name, types)}" for name, types in self.predicates.items()]
        lines.append("Actions:")
        for a in self.actions:
            names = [f"?{chr(ord('x') + i) if len(a.parameters) < 4 else f'x{i}'}" for i in range(len(a.parameters))]
            typed = [f"{name} - {type_}" for name, type_ in zip(names, a.parameters, strict=True)]
            lines.append(f"  {ground_name(a.name, typed)}:")
            for label, atoms in (("pre", a.pre), ("add", a.add), ("del", a.delete)):
                shown = ", ".join(ground_name(*atom.ground(names)) for atom in sorted(atoms))
                lines.append(f"    {label} = [{shown}]")
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------- names as text


_TEXT = re.compile(r"\(?\s*([^\s(),]+)(.*)$", re.DOTALL)


def ground_name(name: str, objects: Sequence[str]) -> str:
    """`on(a,b)`; the name alone if there are no objects."""
    return f"{name}({','.join(objects)})" if objects else name


def parse_action(action: Any, position: int = 0) -> GroundAction:
    """A ground action from `"stack b1 b2"`, `"(stack b1 b2)"`, `"stack(b1,b2)"`, `("stack", "b1", "b2")` or itself.

    Raises:
        StripsError: none of these; names the position.
    """
    if isinstance(action, GroundAction):
        return action
    if isinstance(action, str):
        match = _TEXT.fullmatch(action.strip())
        if match:
            return GroundAction(match[1], tuple(re.findall(r"[^\s(),]+", match[2])))
    elif isinstance(action, Sequence) and action and all(isinstance(part, str) and part for part in action):
        return GroundAction(action[0], tuple(action[1:]))
    raise StripsError(
        f"The action at position {position} must be a text such as 'stack b1 b2' or 'stack(b1,b2)', or a list of its "
        f"name and objects, got {action!r}."
    )


def _atom(fact: Any) -> tuple[str, tuple[str, ...]]:
    """A ground atom as (predicate, objects)."""
    if isinstance(fact, str):
        ground = parse_action(fact)
        return ground.name, ground.objects
    predicate, objects = fact
    return predicate, tuple(objects)
