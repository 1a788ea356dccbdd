"""Rules that follow from others: what happens to a tuple is a finite automaton, and the others say which words it has.

Only rules of the same kind are compared, over the events of one tuple; so what is left out is implied in every log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hf_mech.planning.lifted.learning.events import bits_of
from hf_mech.planning.lifted.learning.rules import Rule

MOST_STATES = 2_000
"""States of the automaton at most; a rule that needs more is kept."""


def independent(rules: Iterable[Rule]) -> list[Rule]:
    """The rules without those that others imply, in their order; the last ones are the first to go."""
    kept = list(rules)
    for kind in sorted({rule.kind for rule in kept}):
        own = [rule for rule in kept if rule.kind == kind]
        for rule in reversed(own.copy()):
            others = [other for other in own if other != rule]
            if implied(rule, others):
                own = others
                kept.remove(rule)
    return kept


def implied(rule: Rule, others: Sequence[Rule]) -> bool:
    """Whether no sequence of patterns on a tuple keeps the others and breaks the rule.

    A state is the set of (adds, delete) whose delete came after the last of the adds, as bits.
    """
    if any(other.adds | rule.adds == rule.adds and other[2:] == rule[2:] for other in others):
        return True
    if all(other.need != rule.need for other in others):
        return False
    heads = list(dict.fromkeys((each.adds, each.delete) for each in (*others, rule)))
    number = {head: bit for bit, head in enumerate(heads)}
    events = {each.delete for each in (*others, rule)} | {each.need for each in (*others, rule)}
    events |= {pattern for adds, _ in heads for pattern in bits_of(adds)}
    forbid, clear, begin = dict.fromkeys(events, 0), dict.fromkeys(events, 0), dict.fromkeys(events, 0)
    for other in others:
        forbid[other.need] |= 1 << number[other.adds, other.delete]
    for bit, (adds, delete) in enumerate(heads):
        for pattern in bits_of(adds):
            clear[pattern] |= 1 << bit
        if not adds >> delete & 1:
            begin[delete] |= 1 << bit
    broken = 1 << number[rule.adds, rule.delete]
    moves = [(pattern, forbid[pattern], ~clear[pattern], begin[pattern]) for pattern in sorted(events)]
    states, seen = [0], {0}
    while states:
        state = states.pop()
        for pattern, not_if, stays, begins in moves:
            if state & not_if:
                continue
            if pattern == rule.need and state & broken:
                return False
            following = state & stays | begins
            if following not in seen:
                if len(seen) >= MOST_STATES:
                    return False
                seen.add(following)
                states.append(following)
    return True
