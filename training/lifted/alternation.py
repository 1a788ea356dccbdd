"""The plain test: every predicate whose effects alternate in all traces, without a price and without a tolerance.

A feature is a set of patterns of one kind (an action and places of its arguments). It is consistent if its patterns can
be divided into those that add and those that delete an atom, so that the effects on every tuple of objects alternate:
the test of SIFT (Gösgens, Jansen and Geffner 2024). Consistent features are predicates; what is true of one before an
action in all traces is a precondition. Bounds keep the enumeration short: so many patterns of a feature, so many sets
and features of a kind, small ones first, and so many seconds.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.lifted.learning.events import Kind, Touches, bits_of, kinds_of, read_steps, touches_of

MOST_ARITY, MOST_PATTERNS, MOST_SETS, MOST_FEATURES = 2, 8, 20_000, 100

Gap = tuple[int, int, int]
"""Two patterns, one before the other on a tuple, and those between them, as bits."""


class Feature(NamedTuple):
    """Patterns of a kind that add and that delete, as bits."""

    adds: int
    deletes: int


def learn_by_alternation(traces: Iterable[Iterable[GroundAction]], limit: float) -> tuple[LiftedDomain, bool]:
    """The domain of all consistent features, and whether the bounds left some sets untried.

    Args:
        traces: of actions that were done.
        limit: seconds; after them no further set is tried.
    """
    steps, until, cut = read_steps(traces), time.perf_counter() + limit, False
    predicates: dict[str, tuple[str, ...]] = {}
    parts: dict[str, list[set[LiftedAtom]]] = {name: [set(), set(), set()] for name in steps.names}
    for kind in kinds_of(steps, MOST_ARITY):
        touches = touches_of(steps, kind)
        gaps = gaps_between(touches)
        sets, whole = alternating(len(kind.patterns), gaps, until)
        cut |= not whole
        kept = (feature for feature in features(sets, gaps) if _canonical(kind, feature))
        for number, feature in enumerate(kept):
            if time.perf_counter() > until or number == MOST_FEATURES:
                cut = True
                break
            for adds, deletes, needs in _predicates(feature, touches):
                if not needs:
                    continue
                name = f"p{len(predicates) + 1}"
                predicates[name] = tuple(f"t{type_}" for type_ in kind.types)
                for part, patterns in enumerate((needs, adds, deletes)):
                    for pattern in bits_of(patterns):
                        action, places = kind.patterns[pattern]
                        parts[steps.names[action]][part].add(LiftedAtom(name, places))
    actions = tuple(
        LiftedAction(name, tuple(f"t{type_}" for type_ in types), *(frozenset(own) for own in parts[name]))
        for name, types in zip(steps.names, steps.types, strict=True)
    )
    return LiftedDomain(predicates, actions, "alternation"), cut


def gaps_between(touches: Touches) -> set[Gap]:
    """Every pair of patterns that may be neighbours in a feature, with those between them."""
    found: set[Gap] = set()
    done = touches.done.tolist()
    for first, end in zip(touches.starts, touches.starts[1:], strict=False):
        for place in range(int(first), int(end)):
            for delete in bits_of(done[place]):
                between = 0
                for later in range(place + 1, int(end)):
                    found.update((delete, need, between) for need in bits_of(done[later] & ~between))
                    between |= done[later]
                    if between >> delete & 1:
                        break
    return found


def alternating(patterns: int, gaps: Iterable[Gap], until: float = math.inf) -> tuple[list[int], bool]:
    """The sets in which no pattern follows itself, small ones first, and whether the bounds left none out.

    A pattern that follows itself asks for one of those between; a set in which none does may grow by any. After the
    time `until`, as of `time.perf_counter`, no set grows.
    """
    own: dict[int, list[int]] = {pattern: [] for pattern in range(patterns)}
    for delete, need, between in gaps:
        if delete == need:
            own[delete].append(between)
    for masks in own.values():
        masks.sort(key=int.bit_count)
    found: list[int] = []
    queue = [(1, 1 << pattern) for pattern in range(patterns)]
    seen, whole = {each for _, each in queue}, True
    while queue:
        size, each = heapq.heappop(queue)
        open_gaps = (next((mask for mask in own[one] if not mask & each), None) for one in bits_of(each))
        narrowest = min((mask for mask in open_gaps if mask is not None), key=int.bit_count, default=None)
        if narrowest is None:
            found.append(each)
            narrowest = (1 << patterns) - 1
        if size == MOST_PATTERNS or len(seen) > MOST_SETS or time.perf_counter() > until:
            whole = False
            continue
        for one in bits_of(narrowest & ~each):
            if (larger := each | 1 << one) not in seen:
                seen.add(larger)
                heapq.heappush(queue, (size + 1, larger))
    return found, whole


def features(sets: Iterable[int], gaps: set[Gap]) -> Iterator[Feature]:
    """The sets whose patterns can be divided, in one way alone."""
    by_pattern: dict[int, list[Gap]] = {}
    for gap in gaps:
        by_pattern.setdefault(gap[0], []).append(gap)
    for own in sets:
        neighbours: dict[int, set[int]] = {pattern: set() for pattern in bits_of(own)}
        for pattern in neighbours:
            for delete, need, between in by_pattern.get(pattern, ()):
                if own >> need & 1 and not own & between:
                    neighbours[delete].add(need)
                    neighbours[need].add(delete)
        first = next(iter(neighbours))
        sign, frontier, fits = {first: 1}, [first], True
        while frontier and fits:
            pattern = frontier.pop()
            for other in neighbours[pattern]:
                if other not in sign:
                    sign[other] = -sign[pattern]
                    frontier.append(other)
                fits &= sign[other] != sign[pattern]
        if fits and len(sign) == len(neighbours) > 1:
            yield Feature(*(sum(1 << p for p, value in sign.items() if value == wanted) for wanted in (1, -1)))


def _canonical(kind: Kind, feature: Feature) -> bool:
    """False for the mirror image of another feature: the objects of one type exchanged."""
    if len(kind.types) < 2 or kind.types[0] != kind.types[1]:
        return True
    index = {pattern: number for number, pattern in enumerate(kind.patterns)}
    own = feature.adds | feature.deletes
    mirrored = (kind.patterns[one]._replace(places=kind.patterns[one].places[::-1]) for one in bits_of(own))
    return own <= sum(1 << index[pattern] for pattern in mirrored)


def _predicates(feature: Feature, touches: Touches) -> Iterator[tuple[int, int, int]]:
    """Adds, deletes and needs of the feature as a predicate, and of its complement."""
    true, false = _seen(feature, touches)
    yield feature.adds, feature.deletes, true & ~false
    yield feature.deletes, feature.adds, false & ~true


def _seen(feature: Feature, touches: Touches) -> tuple[int, int]:
    """The patterns that were done where the feature's atom is true, and where it is false, as bits.

    Before the first effect the atom has the value that this effect changes.
    """
    adds, deletes = np.uint64(feature.adds), np.uint64(feature.deletes)
    effect = np.where(touches.done & adds, 1, np.where(touches.done & deletes, -1, 0))
    place, group = np.arange(len(effect)), np.repeat(np.arange(len(touches.starts) - 1), np.diff(touches.starts))
    last = np.maximum.accumulate(np.where(effect != 0, place, -1))
    before = np.concatenate([[-1], last[:-1]])
    value = np.where(before >= touches.starts[group], effect[before], 0)
    following = np.where(effect != 0, place, len(effect))[::-1]
    following = np.minimum.accumulate(following)[::-1]
    ahead = (value == 0) & (following < touches.starts[group + 1])
    value[ahead] = -effect[following[ahead]]
    return tuple(  # type: ignore[return-value]
        int(np.bitwise_or.reduce(touches.done[value == wanted], initial=np.uint64(0))) for wanted in (1, -1)
    )
