"""Rules that follow from others: what happens to a tuple is a finite automaton, and the others say which words it has.

Only rules of the same kind are compared, over the events of one tuple; so what is left out is implied in every log. An
event is a pattern, or several if an action of the log has an object twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hf_mech.planning.lifted.learning.events import bits_of
from hf_mech.planning.lifted.learning.rules import Rule

MOST_STATES = 2_000
"""States of the automaton at most; a rule that needs more is kept."""


def independent(rules: Iterable[Rule], together: Mapping[int, Iterable[int]] | None = None) -> list[Rule]:
    """The rules without those that others imply, in their order; the last ones are the first to go.

    Args:
        rules: of all kinds.
        together: for each kind the patterns that touched a tuple in one step, as bits; None: never several.
    """
    kept = list(rules)
    for kind in sorted({rule.kind for rule in kept}):
        own = [rule for rule in kept if rule.kind == kind]
        for rule in reversed(own.copy()):
            others = [other for other in own if other != rule]
            if implied(rule, others, (together or {}).get(kind, ())):
                own = others
                kept.remove(rule)
    return kept


def implied(rule: Rule, others: Sequence[Rule], together: Iterable[int] = ()) -> bool:
    """Whether no sequence of events on a tuple keeps the others and breaks the rule.

    A state is the set of (adds, delete) whose delete came after the last of the adds, as bits.
    """
    if any(other.adds | rule.adds == rule.adds and other[2:] == rule[2:] for other in others):
        return True
    if all(other.need != rule.need for other in others):
        return False
    heads = list(dict.fromkeys((each.adds, each.delete) for each in (*others, rule)))
    number = {head: bit for bit, head in enumerate(heads)}
    patterns = 0
    for each in (*others, rule):
        patterns |= each.adds | 1 << each.delete | 1 << each.need
    events = {event & patterns for event in together} | {1 << pattern for pattern in bits_of(patterns)}
    broken = 1 << number[rule.adds, rule.delete]
    moves = []
    for event in sorted(events - {0}):
        forbid = sum({1 << number[other.adds, other.delete] for other in others if event >> other.need & 1})
        clear = sum(1 << number[head] for head in heads if event & head[0])
        begin = sum(1 << number[head] for head in heads if event >> head[1] & 1 and not event & head[0])
        moves.append((event >> rule.need & 1, forbid, ~clear, begin))
    states, seen = [0], {0}
    while states:
        state = states.pop()
        for needs, not_if, stays, begins in moves:
            if state & not_if:
                continue
            if needs and state & broken:
                return False
            following = state & stays | begins
            if following not in seen:
                if len(seen) >= MOST_STATES:
                    return False
                seen.add(following)
                states.append(following)
    return True
