"""Relations that no action changes: which objects an action was ever seen with.

A relation of some places of an action is taken if it makes the log shorter. Without it, a tuple of objects is one of
the n possible ones: log2 n bits. With it, a tuple is new or one of the k seen so far, and both have an adaptive price:
of i tuples told, k were new, so the next one is new with the chance (k + 1/2) / (i + 1), and then one of the n - k
others. That is shorter only if new tuples have become rare, so that those seen are all that there are. A tuple counts
once in 50 steps of a trace: a walk repeats itself. Traces over other objects are told apart. Relations of several
actions that can be one are joined if that is shorter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.events import Steps

Tuple = tuple[int, ...]
_PRICE = 8.0
_MOST_TUPLES = 200_000
_MOST_WORLDS = 1_000
_STRETCH = 50


@dataclass(frozen=True)
class StaticRelation:
    """A relation and the places of actions that need it.

    Attributes:
        types: of its places.
        tuples: those for which it is true.
        uses: schemas and their places.
    """

    types: tuple[int, ...]
    tuples: frozenset[Tuple]
    uses: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class _Use:
    """The places of an action: the tuples that stood there, once a stretch, and how many could, by world."""

    schema: int
    places: tuple[int, ...]
    told: tuple[tuple[Tuple, ...], ...]
    possible: tuple[int, ...]

    def turned(self, order: Sequence[int]) -> _Use:
        """The same with another order of the places."""
        told = tuple(tuple(tuple(each[place] for place in order) for each in own) for own in self.told)
        return _Use(self.schema, tuple(self.places[place] for place in order), told, self.possible)


@dataclass(frozen=True)
class _Found:
    types: tuple[int, ...]
    uses: tuple[_Use, ...]

    @cached_property
    def tuples(self) -> frozenset[Tuple]:
        return frozenset(each for use in self.uses for own in use.told for each in own)

    @property
    def possible(self) -> int:
        """The tuples that the use with the fewest allows."""
        return min(sum(use.possible) for use in self.uses)

    @cached_property
    def cost(self) -> float:
        """The bits of the tuples with the relation, less those without it."""
        bits = _PRICE
        for world in range(len(self.uses[0].told)):
            told = [each for use in self.uses for each in use.told[world]]
            bits += _adaptive(told, max(use.possible[world] for use in self.uses))
            bits -= sum(len(use.told[world]) * math.log2(max(1, use.possible[world])) for use in self.uses)
        return bits


def _adaptive(told: Sequence[Tuple], possible: int) -> float:
    """The bits of a sequence of tuples, each new or one of those seen so far."""
    seen: set[Tuple] = set()
    bits = 0.0
    for number, each in enumerate(told):
        new = (len(seen) + 0.5) / (number + 1)
        if each in seen:
            bits += math.log2(len(seen)) - math.log2(1 - new)
        else:
            bits += math.log2(max(1, possible - len(seen))) - math.log2(new)
            seen.add(each)
    return bits


def static_relations(steps: Steps) -> tuple[list[StaticRelation], list[tuple[int, tuple[int, int]]]]:
    """The relations that shorten the log, and the pairs of places that never hold the same object."""
    worlds, world_of = _worlds(steps)
    found: list[_Found] = []
    different: list[tuple[int, tuple[int, int]]] = []
    for schema, types in enumerate(steps.types):
        where = np.flatnonzero((steps.action == schema) & ~steps.failed)
        known: dict[tuple[int, ...], frozenset[Tuple]] = {}
        apart: set[tuple[int, ...]] = set()
        for size in (1, 2, 3) if len(where) else ():
            for places in itertools.combinations(range(len(types)), size):
                own = tuple(types[place] for place in places)
                possible = _possible(worlds, own, places, known, apart)
                if possible is None:
                    continue
                told = _told(steps, where, places, world_of, len(worlds))
                if size == 2 and own[0] == own[1] and all(a != b for each in told for a, b in each):
                    without = [{pair for pair in each if pair[0] != pair[1]} for each in possible]
                    before, after = (max(1, sum(map(len, each))) for each in (possible, without))
                    if sum(map(len, told)) * math.log2(before / after) > 2:
                        different.append((schema, (places[0], places[1])))
                        apart.add(places)
                        possible = without
                one = _Found(own, (_Use(schema, places, told, tuple(map(len, possible))),))
                if len(one.tuples) < one.possible and one.cost < 0:
                    known[places] = one.tuples
                    found.append(one)
    joined = _join(found)
    relations = [
        StaticRelation(one.types, one.tuples, tuple((use.schema, use.places) for use in one.uses)) for one in joined
    ]
    return relations, different


def _told(
    steps: Steps, where: NDArray[np.int64], places: tuple[int, ...], world_of: NDArray[np.int64], worlds: int
) -> tuple[tuple[Tuple, ...], ...]:
    """The tuples at these places by world, each once a stretch, in the order of the log."""
    rows, count = steps.arguments[where][:, places], len(steps.objects)
    position = where - steps.starts[steps.trace[where]]
    keys = steps.trace[where] * (len(steps.action) // _STRETCH + 1) + position // _STRETCH
    for column in rows.T:
        keys = keys * count + column
    firsts = np.sort(np.unique(keys, return_index=True)[1])
    told: list[list[Tuple]] = [[] for _ in range(worlds)]
    for world, row in zip(world_of[steps.trace[where[firsts]]].tolist(), rows[firsts].tolist(), strict=True):
        if world >= 0:
            told[world].append(tuple(row))
    return tuple(map(tuple, told))


def _worlds(steps: Steps) -> tuple[list[dict[int, set[int]]], NDArray[np.int64]]:
    """The objects of each type in each set of traces that share their objects, and the set of each trace.

    -1: of the traces beyond `_MOST_WORLDS`.
    """
    kind = {each: type_ for type_, own in steps.objects_of.items() for each in own}
    of_trace = [
        frozenset(np.unique(steps.arguments[begin:end]).tolist()) - {-1}
        for begin, end in zip(steps.starts, steps.starts[1:], strict=False)
    ]
    largest: list[frozenset[int]] = []
    for own in sorted(dict.fromkeys(of_trace), key=len, reverse=True)[:_MOST_WORLDS]:
        if not any(own <= other for other in largest):
            largest.append(own)
    number: dict[frozenset[int], int] = {}
    for own in dict.fromkeys(of_trace):
        number[own] = next((world for world, other in enumerate(largest) if own <= other), -1)
    worlds = []
    for own in largest:
        world: dict[int, set[int]] = {}
        for each in own:
            world.setdefault(kind[each], set()).add(each)
        worlds.append(world)
    return worlds, np.array([number[own] for own in of_trace], np.int64)


def _possible(
    worlds: list[dict[int, set[int]]],
    types: tuple[int, ...],
    places: tuple[int, ...],
    known: dict[tuple[int, ...], frozenset[Tuple]],
    apart: set[tuple[int, ...]],
) -> list[set[Tuple]] | None:
    """The tuples that relations of fewer places leave, by world; None: too many to list."""
    if sum(math.prod(len(world.get(type_, ())) for type_ in types) for world in worlds) > _MOST_TUPLES:
        return None
    parts = [part for size in range(1, len(places)) for part in itertools.combinations(range(len(places)), size)]
    checks = [(part, known[own]) for part in parts if (own := tuple(places[i] for i in part)) in known]
    unequal = [part for part in parts if tuple(places[i] for i in part) in apart]
    return [
        {
            each
            for each in itertools.product(*(world.get(type_, ()) for type_ in types))
            if all(tuple(each[i] for i in part) in own for part, own in checks)
            and all(each[part[0]] != each[part[1]] for part in unequal)
        }
        for world in worlds
    ]


def _join(found: list[_Found]) -> list[_Found]:
    """Joins relations, also in another order of their places, as long as that saves bits."""
    while True:
        best: tuple[float, int, int, _Found] | None = None
        for (i, one), (j, other) in itertools.combinations(enumerate(found), 2):
            for order in itertools.permutations(range(len(one.types))) if len(one.types) == len(other.types) else ():
                if tuple(other.types[place] for place in order) != one.types:
                    continue
                both = _Found(one.types, one.uses + tuple(use.turned(order) for use in other.uses))
                if len(both.tuples) >= both.possible:
                    continue
                saved = one.cost + other.cost - both.cost
                if saved > (best[0] if best else 0.0):
                    best = saved, i, j, both
        if best is None:
            return found
        _, i, j, both = best
        found = [one for number, one in enumerate(found) if number not in (i, j)] + [both]
