"""Traces over objects as arrays: steps, the types of their objects, and what happens to every tuple of objects.

A *pattern* is an action schema and some of its places: `stack` and the places (0, 1). It *touches* the tuple of objects
that stand there. A *kind* is a sequence of types, and all patterns whose places have these types: what can happen to a
tuple of such objects, and so to an atom of a predicate over them. The patterns of SIFT (Gösgens, Jansen and Geffner
2024) are the same.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.strips_lifted import GroundAction, parse_action
from hf_mech.planning.problem import PlanningError

MOST_PATTERNS = 62
"""A kind with more patterns is left out: they are bits of one machine word."""


class Pattern(NamedTuple):
    """An action schema, by its number, and some of its places."""

    action: int
    places: tuple[int, ...]


class Kind(NamedTuple):
    """The types of a tuple, ascending, and the patterns that touch such tuples."""

    types: tuple[int, ...]
    patterns: tuple[Pattern, ...]

    def canonical(self, pattern: int) -> bool:
        """False for the mirror image of another pattern: the same places with two objects of one type exchanged."""
        places = self.patterns[pattern].places
        pairs = zip(self.types, self.types[1:], places, places[1:], strict=False)
        return all(one != other or first < second for one, other, first, second in pairs)


@dataclass(frozen=True)
class Steps:
    """All traces, one behind another.

    Attributes:
        names, arity: of the action schemas.
        objects: the names of the objects.
        action: the schema of each step, [N].
        arguments: its objects, -1 behind the last, [N, most].
        failed: whether the step failed, so that it changed nothing, [N].
        starts: the first step of each trace, and N, [traces + 1].
        types: the type of each place of each schema.
    """

    names: tuple[str, ...]
    arity: tuple[int, ...]
    objects: tuple[str, ...]
    action: NDArray[np.int64]
    arguments: NDArray[np.int64]
    failed: NDArray[np.bool_]
    starts: NDArray[np.int64]
    types: tuple[tuple[int, ...], ...]

    @cached_property
    def trace(self) -> NDArray[np.int64]:
        """The trace of each step, [N]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def first(self, traces: int) -> Steps:
        """Only the first traces."""
        end = int(self.starts[traces])
        return Steps(
            self.names,
            self.arity,
            self.objects,
            self.action[:end],
            self.arguments[:end],
            self.failed[:end],
            self.starts[: traces + 1],
            self.types,
        )

    @property
    def objects_of(self) -> dict[int, list[int]]:
        """The objects of each type, in the order of their names' first use."""
        found: dict[int, set[int]] = defaultdict(set)
        for schema, types in enumerate(self.types):
            rows = self.arguments[self.action == schema]
            for place, type_ in enumerate(types):
                found[type_].update(np.unique(rows[:, place]).tolist())
        return {type_: sorted(own) for type_, own in sorted(found.items())}


def read_steps(traces: Iterable[Iterable[Any]], labels: Iterable[Sequence[int]] | None = None) -> Steps:
    """The traces as arrays.

    Args:
        traces: ground actions, as `parse_action` takes them.
        labels: 1 where the action failed and changed nothing; None: none did.

    Raises:
        PlanningError: no action at all, an action that cannot be read, a schema with different numbers of objects, or
            labels that do not fit.
    """
    schemas: dict[str, int] = {}
    arity: list[int] = []
    objects: dict[str, int] = {}
    action: list[int] = []
    arguments: list[tuple[int, ...]] = []
    failed: list[int] = []
    starts = [0]
    if not isinstance(traces, Iterable):
        raise PlanningError(f"Traces are lists of actions, [['stack b1 b2'], ...]; got {traces!r}.")
    if labels is not None and not isinstance(labels, Iterable):
        raise PlanningError(f"Labels are lists, one for each trace, [[0], ...]; got {labels!r}.")
    told = None if labels is None else list(labels)
    known: dict[Any, tuple[int, tuple[int, ...]]] = {}
    for number, trace in enumerate(traces):
        if isinstance(trace, str):
            raise PlanningError(
                f"Trace {number} must be a list of actions, got the string {trace!r}; write [{trace!r}]."
            )
        if not isinstance(trace, Iterable):
            raise PlanningError(f"Trace {number} must be a list of actions, got {trace!r}.")
        for position, given in enumerate(trace):
            key = given if isinstance(given, str | GroundAction) else tuple(given) if isinstance(given, list) else given
            try:
                found = known.get(key)
            except TypeError:
                found = None
            if found is None:
                found = known[key] = _numbers(given, number, position, schemas, arity, objects)
            action.append(found[0])
            arguments.append(found[1])
        length = len(action) - starts[-1]
        if told is not None:
            own: Any = told[number] if number < len(told) else []
            own = list(own) if isinstance(own, Iterable) and not isinstance(own, str) else own
            if not isinstance(own, list) or len(own) != length or not all(label in (0, 1) for label in own):
                raise PlanningError(
                    f"Trace {number} needs a label for each of its {length} actions, 0 (done) or 1 (failed); got {own}."
                )
            failed += own
        starts.append(len(action))
    if told is not None and len(told) != len(starts) - 1:
        raise PlanningError(f"Each trace needs its labels: got {len(starts) - 1} traces, labels of {len(told)}.")
    if not action:
        raise PlanningError("There are no traces to learn from; give at least one that is not empty.")
    most = max(arity)
    table = np.full((len(action), most), -1, np.int64)
    for place in range(most):
        table[:, place] = [own[place] if place < len(own) else -1 for own in arguments]
    schema = np.array(action, np.int64)
    return Steps(
        tuple(schemas),
        tuple(arity),
        tuple(objects),
        schema,
        table,
        np.array(failed, bool) if told is not None else np.zeros(len(action), bool),
        np.array(starts, np.int64),
        _types(schema, table, arity),
    )


def _numbers(
    given: Any, trace: int, position: int, schemas: dict[str, int], arity: list[int], objects: dict[str, int]
) -> tuple[int, tuple[int, ...]]:
    """An action as numbers; new schemas and objects get the next ones."""
    try:
        ground = parse_action(given, position)
    except StripsError as error:
        raise PlanningError(f"Trace {trace}: {error}") from error
    schema = schemas.setdefault(ground.name, len(schemas))
    if schema == len(arity):
        arity.append(len(ground.objects))
    if arity[schema] != len(ground.objects):
        raise PlanningError(
            f"Action {ground.name!r} has {len(ground.objects)} objects at position {position} of trace {trace}, and "
            f"{arity[schema]} before. Give the variants names of their own."
        )
    return schema, tuple(objects.setdefault(name, len(objects)) for name in ground.objects)


def _types(
    action: NDArray[np.int64], arguments: NDArray[np.int64], arity: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """The types of all places: two places that share an object have one type."""
    places = [(schema, place) for schema, count in enumerate(arity) for place in range(count)]
    parent = list(range(len(places)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    seen: dict[int, int] = {}
    for number, (schema, place) in enumerate(places):
        for each in np.unique(arguments[action == schema, place]).tolist():
            parent[root(number)] = root(seen.setdefault(each, number))
    roots = sorted({root(number) for number in range(len(places))})
    types: list[list[int]] = [[] for _ in arity]
    for number, (schema, _) in enumerate(places):
        types[schema].append(roots.index(root(number)))
    return tuple(map(tuple, types))


def kinds_of(steps: Steps, most_arity: int) -> list[Kind]:
    """All kinds of tuples of up to so many objects, those with too many patterns (`MOST_PATTERNS`) left out."""
    patterns: dict[tuple[int, ...], list[Pattern]] = defaultdict(list)
    for schema, types in enumerate(steps.types):
        for size in range(min(most_arity, len(types)) + 1):
            for places in itertools.permutations(range(len(types)), size):
                kind = tuple(types[place] for place in places)
                if list(kind) == sorted(kind):
                    patterns[kind].append(Pattern(schema, places))
    ordered = sorted(patterns.items(), key=lambda item: (len(item[0]), item[0]))
    return [Kind(types, tuple(own)) for types, own in ordered if len(own) <= MOST_PATTERNS]


class Touches(NamedTuple):
    """What happens to the tuples of one kind: events in the order of trace, tuple and time.

    A *group* is a tuple in a trace.

    Attributes:
        keys: the tuple of each group, as one number, [groups].
        starts: the first event of each group, and the number of events, [groups + 1].
        trace: of each group, [groups].
        time: the step in its trace of each event, from 0, [events].
        done: the patterns that touch the tuple there, as bits, [events].
        failed: the patterns of a failed step, as bits, [events].
        possible: the patterns that touch the tuple anywhere, in any trace, as bits, [groups].
    """

    keys: NDArray[np.int64]
    starts: NDArray[np.int64]
    trace: NDArray[np.int64]
    time: NDArray[np.int64]
    done: NDArray[np.uint64]
    failed: NDArray[np.uint64]
    possible: NDArray[np.uint64]


def key_of(objects: Iterable[int], count: int) -> int:
    """A tuple of objects as one number."""
    key = 0
    for each in objects:
        key = key * count + each
    return key


def touches_of(steps: Steps, kind: Kind) -> Touches:
    """The events of all tuples of a kind."""
    count = len(steps.objects)
    parts = list[tuple[NDArray[Any], ...]]()
    for bit, pattern in enumerate(kind.patterns):
        rows = np.flatnonzero(steps.action == pattern.action)
        key = np.zeros(len(rows), np.int64)
        for place in pattern.places:
            key = key * count + steps.arguments[rows, place]
        parts.append((rows, key, np.full(len(rows), 1 << bit, np.uint64)))
    row, key, bits = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((row, key, steps.trace[row]))
    row, key, bits = row[order], key[order], bits[order]
    new = np.ones(len(row), bool)  # one event for all patterns of a step that touch the same tuple
    new[1:] = (row[1:] != row[:-1]) | (key[1:] != key[:-1])
    firsts = np.flatnonzero(new)
    bits = np.bitwise_or.reduceat(bits, firsts)
    row, key = row[firsts], key[firsts]
    trace = steps.trace[row]
    group = np.ones(len(row), bool)
    group[1:] = (trace[1:] != trace[:-1]) | (key[1:] != key[:-1])
    starts = np.flatnonzero(group)
    own = np.bitwise_or.reduceat(bits, starts)
    unique, inverse = np.unique(key[starts], return_inverse=True)
    possible = np.zeros(len(unique), np.uint64)
    np.bitwise_or.at(possible, inverse, own)
    failed = steps.failed[row]
    return Touches(
        keys=key[starts],
        starts=np.append(starts, len(row)),
        trace=trace[starts],
        time=row - steps.starts[trace],
        done=np.where(failed, np.uint64(0), bits),
        failed=np.where(failed, bits, np.uint64(0)),
        possible=possible[inverse],
    )


def bits_of(mask: int) -> Iterator[int]:
    """The positions of the ones."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
