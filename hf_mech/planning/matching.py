"""Which proposition of a learned domain is which of the hidden one: compared by the times at which they are false.

Propositions learned from traces have arbitrary names. Definition 1 uses a proposition only through the times at which
it is known to be false: from an action that deletes it to the next one that adds it. So a learned proposition is the
same as a hidden one if both are known false after the same traces, whatever their preconditions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.models.strips.strips_errors import DomainError
from hf_mech.planning.equivalence import NO_STATES, check_same_actions
from hf_mech.planning.reduce import SearchBoundError


@dataclass(frozen=True)
class PropositionMatch:
    """The propositions of a learned domain beside those of a hidden one. Every learned one is in exactly one place.

    Attributes:
        names: learned -> hidden: the same proposition; no two have the same hidden one.
        duplicates: learned -> hidden: the same as well, but the hidden one is in `names` already.
        negated: learned -> hidden: known false exactly while the hidden one is known true.
        extra: learned propositions that are none of these; `idle` ones among them are never false after any trace.
        idle: the extra propositions that forbid nothing, as no trace makes them false.
        missing: hidden propositions that no learned one is the same as, or the negation of.
    """

    names: Mapping[str, str]
    duplicates: Mapping[str, str]
    negated: Mapping[str, str]
    extra: tuple[str, ...]
    idle: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every hidden proposition has a learned one that is the same, and nothing is left over."""
        return not (self.missing or self.extra or self.negated)

    def translate(self, state: Iterable[str]) -> dict[str, bool]:
        """A learned state under hidden names.

        Args:
            state: the true learned propositions, as from `state_after`, where a proposition counts as true until an
                action deletes it.

        Returns:
            Hidden proposition -> False if it is known to be false, True if it is known to be true or, as in `state`,
            not known to be false. Missing propositions are left out, and so are negated ones of which nothing is known.
        """
        true = set(state)
        known = {q: True for p, q in self.negated.items() if p not in true}
        return known | {q: p in true for p, q in self.names.items()}

    def rename(self, learned: StripsDomain) -> StripsDomain:
        """The learned domain under hidden names.

        The second proposition that is the same as `p` becomes `p=2`, one that is its negation `not-p`, and an extra
        one `extra-` and its learned name.
        """
        new: dict[str, str] = {}
        for p in learned.propositions:
            same = self.names.get(p) or self.duplicates.get(p)
            name = same or (f"not-{self.negated[p]}" if p in self.negated else f"extra-{p}")
            taken, number = {*new.values(), *(self.names.values() if p not in self.names else ())}, 2
            while name in taken:
                name, number = f"{name.partition('=')[0]}={number}", number + 1
            new[p] = name
        actions = tuple(
            StripsAction(a.name, *(frozenset(new[p] for p in atoms) for atoms in (a.pre, a.add, a.delete)))
            for a in learned.actions
        )
        return StripsDomain(tuple(new[p] for p in learned.propositions), actions, learned.name)

    def __str__(self) -> str:
        lines = [f"{p} is {q}" for p, q in self.names.items()]
        lines += [f"{p} is {q}, once more" for p, q in self.duplicates.items()]
        lines += [f"{p} is the negation of {q}" for p, q in self.negated.items()]
        lines += [f"{p} has no counterpart{' and is never false' if p in self.idle else ''}" for p in self.extra]
        return "\n".join([*lines, *(f"{q} was not learned" for q in self.missing)])


def match_propositions(
    learned: StripsDomain,
    hidden: StripsDomain,
    initial_states: Iterable[int] | None = None,
    max_states: int = 1_000_000,
) -> PropositionMatch:
    """Find the hidden proposition that each learned one is, by an exact search over all traces positive in both.

    If several hidden propositions are false at the same times, the one with the most similar preconditions is taken.

    Args:
        learned, hidden: domains with the same action names, in any order.
        initial_states: masks of `hidden`'s true propositions, as from `reachable_states`. Only traces that instances
            show are compared then; None: all action sequences. Use it for a domain learned from an instance's traces.
        max_states: the maximum number of joint states to store.

    Raises:
        DomainError: one domain has actions that the other lacks, or `initial_states` is empty.
        SearchBoundError: more than `max_states` joint states.
    """
    check_same_actions(learned, hidden)
    if initial_states is not None and not (initial_states := list(initial_states)):
        raise DomainError(NO_STATES)
    ever, same, opposite = _compare(learned, hidden, initial_states, max_states)
    of_learned, of_hidden = learned.propositions, hidden.propositions
    candidates = {p: [q for j, q in enumerate(of_hidden) if same[i] >> j & 1] for i, p in enumerate(of_learned)}
    opposites = {p: [q for j, q in enumerate(of_hidden) if opposite[i] >> j & 1] for i, p in enumerate(of_learned)}
    names = _one_to_one(learned, hidden, candidates)
    duplicates = {p: same_ones[0] for p, same_ones in candidates.items() if same_ones and p not in names}
    negated = {p: found[0] for p, found in opposites.items() if found and not candidates[p]}
    extra = tuple(p for p in of_learned if not candidates[p] and p not in negated)
    idle = tuple(p for i, p in enumerate(of_learned) if not ever >> i & 1)
    learned_ones = {*negated.values(), *(q for same_ones in candidates.values() for q in same_ones)}
    return PropositionMatch(
        names, duplicates, negated, extra, idle, tuple(q for q in of_hidden if q not in learned_ones)
    )


def _compare(
    learned: StripsDomain, hidden: StripsDomain, initial_states: Iterable[int] | None, max_states: int
) -> tuple[int, list[int], list[int]]:
    """Compares the propositions over all joint states. Sets of propositions are masks.

    Returns:
        The learned propositions that are ever false; for each learned one, the hidden ones that are known false at the
        same times; and those that are known true exactly then. The last two are empty for one that is never false.
    """
    ever = 0
    same = [(1 << len(hidden.propositions)) - 1] * len(learned.propositions)
    opposite = same.copy()
    for false, false_hidden, true_hidden in _joint_states(learned, hidden, initial_states, max_states):
        ever |= false
        for p in range(len(same)):
            same[p] &= false_hidden if false >> p & 1 else ~false_hidden
            opposite[p] &= true_hidden if false >> p & 1 else ~true_hidden
    for p in range(len(same)):
        if not ever >> p & 1:
            same[p] = opposite[p] = 0
    return ever, same, opposite


def _one_to_one(learned: StripsDomain, hidden: StripsDomain, candidates: Mapping[str, list[str]]) -> dict[str, str]:
    """A candidate for as many learned propositions as possible, those with the most similar preconditions first."""

    def needing(domain: StripsDomain, proposition: str) -> set[str]:
        return {action.name for action in domain.actions if proposition in action.pre}

    pairs = [(p, q) for p, found in candidates.items() for q in found]
    names: dict[str, str] = {}
    for p, q in sorted(pairs, key=lambda pair: len(needing(learned, pair[0]) ^ needing(hidden, pair[1]))):
        if p not in names and q not in names.values():
            names[p] = q
    return {p: names[p] for p in learned.propositions if p in names}


def _joint_states(
    learned: StripsDomain, hidden: StripsDomain, initial_states: Iterable[int] | None, max_states: int
) -> Iterator[tuple[int, int, int]]:
    """Known false in the learned domain, known false and known true in the hidden one, after every trace."""
    rows = [
        (i, j, learned.pre_masks[i], hidden.pre_masks[j], ~hidden.delete_masks[j], hidden.add_masks[j])
        for i, j in enumerate(hidden.encode(learned.action_names))
    ]
    starts: Iterable[int | None] = [None] if initial_states is None else initial_states
    queue = [(0, 0, 0, state) for state in starts]
    seen = set(queue)
    for false, false_hidden, true_hidden, state in queue:  # grows during the loop
        yield false, false_hidden, true_hidden
        for i, j, pre, pre_hidden, keep, add in rows:
            if pre & false or pre_hidden & false_hidden or (state is not None and pre_hidden & ~state):
                continue
            successor = (
                learned.advance(false, i),
                hidden.advance(false_hidden, j),
                true_hidden & keep | add,
                None if state is None else hidden.apply(state, j),
            )
            if successor not in seen:
                if len(seen) >= max_states:
                    raise SearchBoundError(
                        f"The domains {learned.name!r} and {hidden.name!r} have more than max_states={max_states:,} "
                        "joint states. For traces of an instance pass initial_states=reachable_states(problem); or "
                        "reduce the learned domain first with reduce_propositions; or raise max_states if there is "
                        "memory for them."
                    )
                seen.add(successor)
                queue.append(successor)
