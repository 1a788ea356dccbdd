"""Fewer propositions, same traces: reduces a domain that was learned with more heads than necessary.

A proposition is *known false* from an action that deletes it to the next one that adds it. Until then it forbids every
action that needs it (Definition 1). A proposition is redundant if the others forbid every action that it forbids.
"""

from __future__ import annotations

import numpy as np

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.problem import SearchBoundError


def reduce_propositions(domain: StripsDomain, max_states: int = 1_000_000) -> StripsDomain:
    """Remove and merge propositions as long as the accepted traces (Definition 1) stay exactly the same.

    A proposition is removed if the others forbid every action that it forbids. It is merged into another if that one
    can take over its preconditions. The remaining propositions keep their names, their order, and their add and delete
    lists. The search is greedy and deterministic: no further single removal or merge is possible, but a smaller domain
    may exist.

    There are three passes, each of them exact. The first compares propositions in pairs, and is very fast. The second
    looks for propositions that the stronger ones imply. The third visits every set of known-false propositions
    that a positive trace can lead to, and tries each removal and merge on all of them. Removals and merges leave the
    add and delete lists of the others alone, so the sets are found once.

    Args:
        max_states: the maximum number of known-false sets to store in a search.

    Raises:
        SearchBoundError: there are more.
    """
    domain = _drop_dominated(domain)
    domain = _drop_implied(domain, max_states)
    false = _as_booleans(known_false_states(domain, max_states), len(domain.propositions))  # [states, F]
    required = _preconditions(domain)  # [F, A]
    kept = list(range(len(domain.propositions)))
    forbidden = _forbids(false, required)  # [states, A]; it must not change
    while (smaller := _remove_or_merge(false, required, kept, forbidden)) is not None:
        kept, required = smaller
    return _restrict(domain, kept, required)


def known_false_states(domain: StripsDomain, max_states: int = 1_000_000) -> list[int]:
    """Every set of known-false propositions, as a mask, that a positive trace leads to; breadth first.

    Raises:
        SearchBoundError: there are more than `max_states`.
    """
    states, seen = [0], {0}
    for state in states:  # grows while we walk it
        for action, pre in enumerate(domain.pre_masks):
            if pre & state:
                continue
            successor = domain.advance(state, action)
            if successor not in seen:
                if len(states) >= max_states:
                    raise _too_many(domain, max_states)
                seen.add(successor)
                states.append(successor)
    return states


def _too_many(domain: StripsDomain, max_states: int) -> SearchBoundError:
    return SearchBoundError(
        f"Domain {domain.name!r}, with {len(domain.propositions)} propositions, has more than "
        f"max_states={max_states:,} sets of known-false propositions; raise max_states if there is memory for them."
    )


def _drop_dominated(domain: StripsDomain) -> StripsDomain:
    """The domain without the propositions that a comparison in pairs shows to be redundant.

    Say that p *implies* q if q is known false whenever p is, after every positive trace. Then p is redundant in two
    cases: q forbids every action that p forbids; or q implies p too, so that both are known false at the same times,
    and q can take over p's preconditions.

    The test for "p implies q" uses only the actions. q has to become known false with p: every action that deletes p
    deletes q. And q has to remain known false: an action that adds q must not leave p known false. This holds if the
    action adds p too, or if it needs p or q: then no positive trace has it while both are known false. The test is
    sufficient, not necessary.
    """
    names, actions = domain.propositions, domain.actions
    pre = {p: {a.name for a in actions if p in a.pre} for p in names}
    add = {p: {a.name for a in actions if p in a.add} for p in names}
    delete = {p: {a.name for a in actions if p in a.delete} for p in names}

    def implies(p: str, q: str) -> bool:
        return delete[p] <= delete[q] and add[q] - pre[q] <= add[p] | pre[p]

    kept = [p for p in names if pre[p] and delete[p]]  # the others never forbid an action
    for p in reversed(kept.copy()):
        for q in kept:
            if p == q:
                continue
            if implies(p, q) and (pre[p] <= pre[q] or implies(q, p)):
                kept.remove(p)
                pre[q] |= pre[p]  # changes nothing in the first case
                break
    required = _matrix([[a.name in pre[p] for a in actions] for p in names], len(names), len(actions))
    return _restrict(domain, [names.index(p) for p in kept], required)


def _drop_implied(domain: StripsDomain, max_states: int) -> StripsDomain:
    """The domain without the propositions that stronger ones imply.

    The strength of a proposition is the number of actions that need it plus the number of those that delete it.
    Propositions are considered one by one, the strongest first. One is left out if the kept ones forbid every action
    that it forbids.
    """
    strength = [
        sum(bool(mask >> p & 1) for masks in (domain.pre_masks, domain.delete_masks) for mask in masks)
        for p in range(len(domain.propositions))
    ]
    taken = 0
    for p in sorted(range(len(domain.propositions)), key=lambda p: -strength[p]):
        if not _implied(domain, taken, 1 << p, max_states):
            taken |= 1 << p
    return _restrict(domain, [p for p in range(len(domain.propositions)) if taken >> p & 1], _preconditions(domain))


def _implied(domain: StripsDomain, others: int, p: int, max_states: int) -> bool:
    """Whether every trace that is positive under `others` is also positive under `p`; both are proposition masks."""
    scope = others | p
    rows = [
        (pre & others, pre & p, ~add, delete & scope)
        for pre, add, delete in zip(domain.pre_masks, domain.add_masks, domain.delete_masks, strict=True)
    ]
    states, seen = [0], {0}
    for state in states:  # grows while we walk it
        for pre_others, pre_p, keep, delete in rows:
            if pre_others & state:
                continue
            if pre_p & state:
                return False
            successor = state & keep | delete
            if successor not in seen:
                if len(states) >= max_states:
                    raise _too_many(domain, max_states)
                seen.add(successor)
                states.append(successor)
    return True


def _remove_or_merge(
    false: np.ndarray, required: np.ndarray, kept: list[int], forbidden: np.ndarray
) -> tuple[list[int], np.ndarray] | None:
    """(kept, required) after the first possible removal, or else the first possible merge, from the last one down."""
    merge = None
    for p in reversed(kept):
        others = [q for q in kept if q != p]
        without = _forbids(false[:, others], required[others])
        if np.array_equal(without, forbidden):
            return others, required
        for q in others if merge is None else ():
            if np.array_equal(without | (false[:, q, None] & required[p]), forbidden):
                merged = required.copy()
                merged[q] |= required[p]
                merge = others, merged
                break
    return merge


def _preconditions(domain: StripsDomain) -> np.ndarray:
    """The preconditions, as booleans [F, A]: True if the action needs the proposition."""
    names, actions = domain.propositions, domain.actions
    return _matrix([[p in a.pre for a in actions] for p in names], len(names), len(actions))


def _as_booleans(states: list[int], count: int) -> np.ndarray:
    """Masks as booleans [states, count]."""
    return _matrix([[bool(state >> p & 1) for p in range(count)] for state in states], len(states), count)


def _matrix(rows: list[list[bool]], height: int, width: int) -> np.ndarray:
    """The rows as an array [height, width], either of which may be 0."""
    return np.array(rows, dtype=bool).reshape(height, width)


def _forbids(false: np.ndarray, required: np.ndarray) -> np.ndarray:
    """True if the action has a false precondition in the state: [states, F], [F, A] -> [states, A]."""
    return (false.astype(np.float32) @ required.astype(np.float32)) > 0


def _restrict(domain: StripsDomain, kept: list[int], required: np.ndarray) -> StripsDomain:
    """The domain on the propositions `kept` (by index), with the preconditions `required` [F, A]."""
    names = [domain.propositions[p] for p in kept]
    actions = tuple(
        StripsAction(
            action.name,
            frozenset(domain.propositions[p] for p in kept if required[p, a]),
            action.add.intersection(names),
            action.delete.intersection(names),
        )
        for a, action in enumerate(domain.actions)
    )
    return StripsDomain(tuple(names), actions, domain.name)
