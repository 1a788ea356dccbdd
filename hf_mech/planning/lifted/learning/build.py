"""From rules and static relations to a `LiftedDomain` with readable names."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.lifted.learning.events import Kind, Pattern, Steps, bits_of
from hf_mech.planning.lifted.learning.rules import Rule
from hf_mech.planning.lifted.learning.statics import StaticRelation
from hf_mech.planning.lifted.pddl import DIFFERENT

_MOST_NAMES = 3  # actions in the name of a predicate


def type_names(steps: Steps) -> list[str]:
    """A name for each type: the beginning that its objects' names share, if they do, else a number."""
    names: list[str] = []
    for type_, own in steps.objects_of.items():
        first, last = min(steps.objects[each] for each in own), max(steps.objects[each] for each in own)
        shared = [a for a, b in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))]
        word = re.match(r"[A-Za-z]+", "".join(shared))
        name = word[0].lower() if word and (len(own) > 1 or len(word[0]) > 1) else f"type{type_}"
        names.append(name if name not in names and name != "object" else f"type{type_}")
    return names


def build_domain(
    steps: Steps,
    kinds: Sequence[Kind],
    rules: Iterable[Rule],
    relations: Sequence[StaticRelation],
    different: Sequence[tuple[int, tuple[int, int]]],
    name: str,
) -> tuple[LiftedDomain, set[tuple[str, tuple[str, ...]]], dict[tuple[str, LiftedAtom], list[Rule]]]:
    """The domain; the true static atoms; and the rules behind each precondition, by schema and atom.

    Rules with the same adds and the same needs are one predicate: true behind an add, false behind a delete.
    """
    types = type_names(steps)
    needs_of: dict[tuple[int, int], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for rule in rules:
        needs_of[rule.kind, rule.adds][rule.delete].add(rule.need)
    predicates: dict[str, tuple[str, ...]] = {}
    parts: dict[str, dict[str, set[LiftedAtom]]] = {kind: defaultdict(set) for kind in ("pre", "add", "delete")}
    behind: dict[tuple[str, LiftedAtom], list[Rule]] = defaultdict(list)

    def put(part: str, predicate: str, pattern: Pattern) -> LiftedAtom:
        atom = LiftedAtom(predicate, pattern.places)
        parts[part][steps.names[pattern.action]].add(atom)
        return atom

    for (number, adds), by_delete in sorted(needs_of.items()):
        patterns = kinds[number].patterns
        together: dict[frozenset[int], list[int]] = defaultdict(list)
        for delete, own in sorted(by_delete.items()):
            together[frozenset(own)].append(delete)
        for needs, deletes in together.items():
            adders = [steps.names[patterns[pattern].action] for pattern in bits_of(adds)]
            deleters = [steps.names[patterns[pattern].action] for pattern in deletes]
            word = f"after-{_joined(adders)}" if adders else f"before-{_joined(deleters)}"
            predicate = _free(word, predicates)
            predicates[predicate] = tuple(types[type_] for type_ in kinds[number].types)
            for pattern in bits_of(adds):
                put("add", predicate, patterns[pattern])
            for pattern in deletes:
                put("delete", predicate, patterns[pattern])
            for pattern in sorted(needs):
                atom = put("pre", predicate, patterns[pattern])
                behind[steps.names[patterns[pattern].action], atom] += [
                    Rule(number, adds, delete, pattern) for delete in deletes
                ]
    facts: set[tuple[str, tuple[str, ...]]] = set()
    for relation in relations:
        word = f"may-{_joined([steps.names[schema] for schema, _ in relation.uses])}"
        predicate = _free(word, predicates)
        predicates[predicate] = tuple(types[type_] for type_ in relation.types)
        for schema, places in relation.uses:
            put("pre", predicate, Pattern(schema, places))
        facts |= {(predicate, tuple(steps.objects[each] for each in one)) for one in relation.tuples}
    if different:
        predicates[DIFFERENT] = ("object", "object")
        for schema, pair in different:
            put("pre", DIFFERENT, Pattern(schema, pair))
    actions = tuple(
        LiftedAction(
            own,
            tuple(types[type_] for type_ in steps.types[schema]),
            frozenset(parts["pre"][own]),
            frozenset(parts["add"][own]),
            frozenset(parts["delete"][own]),
        )
        for schema, own in enumerate(steps.names)
    )
    return LiftedDomain(predicates, actions, name), facts, dict(behind)


def _joined(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return "-or-".join(unique[:_MOST_NAMES]) + ("-etc" if len(unique) > _MOST_NAMES else "")


def _free(word: str, taken: Iterable[str]) -> str:
    """The word, with a number if it is taken."""
    names, number = set(taken), 2
    if word not in names:
        return word
    while f"{word}-{number}" in names:
        number += 1
    return f"{word}-{number}"
