"""The definitions of the lifted learner over dictionaries and sets, and random logs to compare with.

A log is a list of traces; a trace is a list of ((schema, objects), failed).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.learning.code import Universe, universe_of
from hf_mech.planning.lifted.learning.events import Kind, Steps, Touches, bits_of, kinds_of, read_steps, touches_of
from hf_mech.planning.lifted.learning.gaps import Gaps, gaps_of
from hf_mech.planning.lifted.learning.rules import Rule

Trace = list[tuple[GroundAction, int]]
NAMES = ("go", "put", "join", "rest")


class Case(NamedTuple):
    """A random log, as lists and as the learner's arrays."""

    log: list[Trace]
    steps: Steps
    kinds: list[Kind]
    touches: list[Touches]

    def __repr__(self) -> str:
        return repr([[(str(action), failed) for action, failed in trace] for trace in self.log])

    @property
    def universe(self) -> Universe:
        return universe_of(self.steps, self.kinds, self.touches)

    @property
    def gaps(self) -> list[Gaps]:
        return [gaps_of(self.steps, *each) for each in zip(self.kinds, self.touches, strict=True)]


@st.composite
def cases(draw: st.DrawFn, failures: bool = True) -> Case:
    """Up to four schemas of 0 to 3 objects of two pools; the same object may stand twice in an action."""
    pools = (["a1", "a2", "a3"], ["b1", "b2"])
    schemas = draw(st.lists(st.lists(st.integers(0, 1), max_size=3), min_size=1, max_size=4))
    step = st.integers(0, len(schemas) - 1).flatmap(
        lambda number: st.tuples(
            st.tuples(*(st.sampled_from(pools[pool]) for pool in schemas[number])).map(
                lambda objects, number=number: GroundAction(NAMES[number], objects)
            ),
            st.sampled_from([0, 0, 0, 1]) if failures else st.just(0),
        )
    )
    log = draw(st.lists(st.lists(step, max_size=12), min_size=1, max_size=4).filter(any))
    return case_of(log)


def case_of(log: list[Trace]) -> Case:
    steps = read_steps(
        [[action for action, _ in trace] for trace in log], [[label for _, label in trace] for trace in log]
    )
    kinds = kinds_of(steps, 3)
    return Case(log, steps, kinds, [touches_of(steps, kind) for kind in kinds])


@st.composite
def rules_of(draw: st.DrawFn, kinds: Sequence[Kind], most: int = 4) -> list[Rule]:
    """Some rules, right or not: three patterns of a kind, the deleting one no adding one."""
    found = []
    for _ in range(draw(st.integers(1, most))):
        number = draw(st.integers(0, len(kinds) - 1))
        patterns = st.integers(0, len(kinds[number].patterns) - 1)
        delete, need, adds = draw(patterns), draw(patterns), draw(st.sets(patterns, max_size=3)) - {-1}
        found.append(Rule(number, sum(1 << pattern for pattern in adds - {delete}), delete, need))
    return list(dict.fromkeys(found))


# -------------------------------------------------------------------------------------------------------- definitions


def types_by_closure(log: list[Trace]) -> set[frozenset[tuple[str, int]]]:
    """The places of actions, merged as long as two sets of places share an object."""
    seen: dict[tuple[str, int], set[str]] = {}
    for action, _ in itertools.chain(*log):
        for place, each in enumerate(action.objects):
            seen.setdefault((action.name, place), set()).add(each)
    parts = [({place}, set(objects)) for place, objects in seen.items()]
    while True:
        pair = next((p for p in itertools.combinations(parts, 2) if p[0][1] & p[1][1]), None)
        if pair is None:
            return {frozenset(places) for places, _ in parts}
        (places, objects), (more, others) = pair
        parts = [part for part in parts if part not in pair] + [(places | more, objects | others)]


def matches(case: Case, kind: Kind, action: GroundAction) -> dict[tuple[str, ...], set[int]]:
    """The tuples of a kind that an action touches, and by which patterns."""
    found: dict[tuple[str, ...], set[int]] = {}
    for number, pattern in enumerate(kind.patterns):
        if case.steps.names[pattern.action] == action.name:
            found.setdefault(tuple(action.objects[place] for place in pattern.places), set()).add(number)
    return found


def touched(case: Case, kind: Kind) -> dict[tuple[int, tuple[str, ...]], dict[int, tuple[set[int], int]]]:
    """For each trace and tuple: the patterns at each step that touches it, and whether the step failed."""
    found: dict[tuple[int, tuple[str, ...]], dict[int, tuple[set[int], int]]] = {}
    for number, trace in enumerate(case.log):
        for time, (action, failed) in enumerate(trace):
            for own, patterns in matches(case, kind, action).items():
                found.setdefault((number, own), {})[time] = patterns, failed
    return found


def possible(case: Case, kind: Kind) -> dict[tuple[str, ...], set[int]]:
    """The patterns that ever touch each tuple."""
    found: dict[tuple[str, ...], set[int]] = {}
    for (_, own), events in touched(case, kind).items():
        found.setdefault(own, set()).update(*(patterns for patterns, _ in events.values()))
    return found


class Moment(NamedTuple):
    """A step of a trace, seen from one tuple that the trace touches somewhere, and one pattern d."""

    delete: int
    since: frozenset[int] | None
    """Patterns since the last d, those of the same step among them; None: before the first d."""
    possible: frozenset[int]
    done: frozenset[int]
    failed: frozenset[int]


def moments(case: Case, kind: Kind) -> Iterator[Moment]:
    """Every step for every tuple and every canonical pattern that is possible for it."""
    able = possible(case, kind)
    for (number, own), events in touched(case, kind).items():
        for delete in able[own]:
            if not kind.canonical(delete):
                continue
            since: set[int] | None = None
            for time in range(len(case.log[number])):
                patterns, failed = events.get(time, (set(), 0))
                yield Moment(
                    delete,
                    None if since is None else frozenset(since),
                    frozenset(able[own]),
                    frozenset() if failed else frozenset(patterns),
                    frozenset(patterns) if failed else frozenset(),
                )
                if delete in patterns and not failed:
                    since = set(patterns) - {delete}
                elif since is not None and not failed:
                    since |= patterns


def falsified(case: Case, rules: Sequence[Rule], trace: Trace) -> Iterator[set[tuple[Rule, tuple[str, ...]]]]:
    """Before each step, the rules in force and the tuples for which they are: the last add or delete was a delete."""
    known: set[tuple[Rule, tuple[str, ...]]] = set()
    for action, failed in trace:
        yield set(known)
        if failed:
            continue
        for rule in rules:
            for own, patterns in matches(case, case.kinds[rule.kind], action).items():
                if patterns & set(bits_of(rule.adds)):
                    known.discard((rule, own))
                elif rule.delete in patterns:
                    known.add((rule, own))


def forbidden(case: Case, known: set[tuple[Rule, tuple[str, ...]]], action: GroundAction) -> set[Rule]:
    """The rules that forbid an action."""
    return {rule for rule, own in known if rule.need in matches(case, case.kinds[rule.kind], action).get(own, set())}


def verdicts(case: Case, rules: Sequence[Rule], trace: Trace) -> list[int]:
    """Definition 1: 1 where a rule forbids the action."""
    states = falsified(case, rules, trace)
    return [int(bool(forbidden(case, known, action))) for known, (action, _) in zip(states, trace, strict=True)]
