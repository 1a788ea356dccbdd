"""Relations that no action changes: which objects an action was ever seen with.

A relation of some places of an action is listed if that makes the log shorter: N actions over n possible tuples, K of
them seen, save N log2(n / K) bits and cost log2 C(n, K) for the list. Relations of several actions that can be one are
joined if one list is shorter.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.events import Steps

Tuples = frozenset[tuple[int, ...]]
_PRICE = 8.0
_MOST_TUPLES = 200_000


@dataclass(frozen=True)
class StaticRelation:
    """A relation and the places of actions that need it.

    Attributes:
        types: of its places.
        tuples: those for which it is true.
        uses: schemas and their places.
    """

    types: tuple[int, ...]
    tuples: Tuples
    uses: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass
class _Found:
    types: tuple[int, ...]
    tuples: Tuples
    possible: int
    uses: list[tuple[int, tuple[int, ...], int]]  # schema, places, actions

    @property
    def cost(self) -> float:
        """The bits of the actions and the list, less those of the actions without it."""
        told = sum(count for *_, count in self.uses)
        saved = told * math.log2(self.possible / len(self.tuples))
        return _PRICE + _choose(self.possible, len(self.tuples)) - saved


def static_relations(steps: Steps) -> tuple[list[StaticRelation], list[tuple[int, tuple[int, int]]]]:
    """The relations that shorten the log, and the pairs of places that never hold the same object."""
    worlds = _worlds(steps)
    found: list[_Found] = []
    different: list[tuple[int, tuple[int, int]]] = []
    for schema, types in enumerate(steps.types):
        rows = steps.arguments[(steps.action == schema) & ~steps.failed][:, : len(types)]
        if not len(rows):
            continue
        known: dict[tuple[int, ...], Tuples] = {}
        apart: set[tuple[int, ...]] = set()
        for size in (1, 2, 3):
            for places in itertools.combinations(range(len(types)), size):
                own = _tuples(rows[:, places], len(steps.objects))
                possible = _possible(worlds, tuple(types[place] for place in places), places, known, apart)
                if possible is None or len(possible) <= len(own):
                    continue
                if size == 2 and types[places[0]] == types[places[1]] and all(a != b for a, b in own):
                    without = {pair for pair in possible if pair[0] != pair[1]}
                    if len(rows) * math.log2(len(possible) / max(1, len(without))) > 2:
                        different.append((schema, (places[0], places[1])))
                        apart.add(places)
                        possible = without
                        if len(possible) <= len(own):
                            continue
                one = _Found(tuple(types[place] for place in places), own, len(possible), [(schema, places, len(rows))])
                if one.cost < 0:
                    known[places] = own
                    found.append(one)
    joined = _join(found)
    relations = [
        StaticRelation(one.types, one.tuples, tuple((schema, places) for schema, places, _ in one.uses))
        for one in joined
    ]
    return relations, different


def _tuples(rows: NDArray[np.int64], count: int) -> Tuples:
    """The different rows; of numbers below `count`."""
    keys = np.zeros(len(rows), np.int64)
    for column in rows.T:
        keys = keys * count + column
    return frozenset(map(tuple, rows[np.unique(keys, return_index=True)[1]].tolist()))


def _worlds(steps: Steps) -> list[dict[int, set[int]]]:
    """The objects of each type in each set of traces that share all their objects."""
    kind = {each: type_ for type_, own in steps.objects_of.items() for each in own}
    sets: dict[frozenset[int], None] = {}
    for begin, end in zip(steps.starts, steps.starts[1:], strict=False):
        sets[frozenset(np.unique(steps.arguments[begin:end]).tolist()) - {-1}] = None
    largest: list[frozenset[int]] = []
    for own in sorted(sets, key=len, reverse=True)[:2000]:
        if not any(own <= other for other in largest):
            largest.append(own)
    worlds = []
    for own in largest:
        world: dict[int, set[int]] = {}
        for each in own:
            world.setdefault(kind[each], set()).add(each)
        worlds.append(world)
    return worlds


def _possible(
    worlds: list[dict[int, set[int]]],
    types: tuple[int, ...],
    places: tuple[int, ...],
    known: dict[tuple[int, ...], Tuples],
    apart: set[tuple[int, ...]],
) -> set[tuple[int, ...]] | None:
    """The tuples that relations of fewer places leave; None: too many to list."""
    if sum(math.prod(len(world.get(type_, ())) for type_ in types) for world in worlds) > _MOST_TUPLES:
        return None
    parts = [part for size in range(1, len(places)) for part in itertools.combinations(range(len(places)), size)]
    checks = [(part, known[own]) for part in parts if (own := tuple(places[i] for i in part)) in known]
    unequal = [part for part in parts if tuple(places[i] for i in part) in apart]
    return {
        each
        for world in worlds
        for each in itertools.product(*(world.get(type_, ()) for type_ in types))
        if all(tuple(each[i] for i in part) in own for part, own in checks)
        and all(each[part[0]] != each[part[1]] for part in unequal)
    }


def _join(found: list[_Found]) -> list[_Found]:
    """Joins relations, also in another order of their places, as long as that saves bits."""
    while True:
        best: tuple[float, int, int, _Found] | None = None
        for (i, one), (j, other) in itertools.combinations(enumerate(found), 2):
            if sorted(one.types) != sorted(other.types):
                continue
            for order in itertools.permutations(range(len(one.types))):
                if tuple(other.types[place] for place in order) != one.types:
                    continue
                turned = frozenset(tuple(each[place] for place in order) for each in other.tuples)
                uses = [(schema, tuple(places[k] for k in order), count) for schema, places, count in other.uses]
                both = _Found(one.types, one.tuples | turned, max(one.possible, other.possible), one.uses + uses)
                if both.possible <= len(both.tuples):
                    continue
                saved = one.cost + other.cost - both.cost
                if saved > (best[0] if best else 0.0):
                    best = saved, i, j, both
        if best is None:
            return found
        _, i, j, both = best
        found = [one for number, one in enumerate(found) if number not in (i, j)] + [both]


def _choose(n: int, k: int) -> float:
    """log2 of the number of ways to choose k of n."""
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)
