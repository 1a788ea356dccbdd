"""Two domains compared by search: whether they accept the same traces, and which proposition is which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.problem import PlanningError, SearchBoundError

# ----------------------------------------------------------------------------------------------------------------------
# Whether two domains accept the same traces; the names of propositions may differ.


@dataclass(frozen=True)
class Equivalence:
    """The result of the search.

    Attributes:
        equivalent: True: every trace is positive in both or in neither. False: `trace` is not. None: undecided, the
            bound was reached first.
        trace: a shortest trace that is positive in one domain and negative in the other, as action names; the domains
            differ at its last action.
        pairs: the number of pairs of known-false sets that were reached.
    """

    equivalent: bool | None
    trace: list[str] | None
    pairs: int

    def __str__(self) -> str:
        if self.equivalent is None:
            return f"undecided after {self.pairs:,} pairs of states (max_pairs reached)"
        if self.equivalent:
            return f"equivalent ({self.pairs:,} pairs of states)"
        return f"told apart by {', '.join(self.trace or [])} ({self.pairs:,} pairs of states)"


NO_STATES = (
    "initial_states is empty: instances without a state show no traces. Pass reachable_states(problem), or leave it "
    "out to compare all action sequences."
)

_Node = tuple[int, int, int | None]


def find_distinguishing_trace(
    a: StripsDomain, b: StripsDomain, max_pairs: int = 1_000_000, initial_states: Iterable[int] | None = None
) -> Equivalence:
    """Decide whether `a` and `b` have the same positive traces (Definition 1), or find a shortest trace that differs.

    Definition 1 depends on a trace only through the set of propositions known to be false, so a domain is a
    deterministic automaton over such sets. The search goes through both automata together, breadth first; a trace that
    is negative in both remains negative and is not extended.

    Some action sequences contradict nothing, yet no state of an instance allows them. Action traces drawn from
    instances cannot distinguish domains that differ only in such sequences. With `initial_states`, the search compares
    only the traces that instances of `b` can produce: action sequences applicable from one of the states, each followed
    by one more action that is applicable or negative.

    Args:
        a, b: domains with the same action names, in any order. Their propositions may differ completely.
        max_pairs: stop with `equivalent=None` before storing more pairs than this.
        initial_states: masks of `b`'s true propositions, as from `reachable_states`; None: all sequences.

    Raises:
        PlanningError: one domain has actions that the other lacks, or `initial_states` is empty.
    """
    check_same_actions(a, b)
    order = b.encode(a.action_names)
    rows = [
        (i, j, a.pre_masks[i], ~a.add_masks[i], a.delete_masks[i], b.pre_masks[j], ~b.add_masks[j], b.delete_masks[j])
        for i, j in enumerate(order)
    ]
    # The third part is the state of an instance of b; None if all sequences are compared.
    starts: list[_Node] = [(0, 0, None)] if initial_states is None else [(0, 0, state) for state in initial_states]
    if not starts:
        raise PlanningError(NO_STATES)
    came_from: dict[_Node, tuple[_Node, int] | None] = dict.fromkeys(starts)
    queue = list(came_from)
    for node in queue:  # grows during the loop
        false_a, false_b, state = node
        for action, other, pre_a, keep_a, delete_a, pre_b, keep_b, delete_b in rows:
            negative_a, negative_b = pre_a & false_a, pre_b & false_b
            if negative_a and negative_b:
                continue
            if state is not None and not negative_b and pre_b & ~state:
                continue  # inapplicable in the instance, but not negative
            if negative_a or negative_b:
                return Equivalence(False, a.decode([*_path(came_from, node), action]), len(came_from))
            after = None if state is None else b.apply(state, other)
            successor = (false_a & keep_a | delete_a, false_b & keep_b | delete_b, after)
            if successor not in came_from:
                if len(came_from) >= max_pairs:
                    return Equivalence(None, None, len(came_from))
                came_from[successor] = (node, action)
                queue.append(successor)
    return Equivalence(True, None, len(came_from))


def _path(came_from: dict[_Node, tuple[_Node, int] | None], node: _Node) -> list[int]:
    """The actions from a start to the node."""
    actions = []
    while (step := came_from[node]) is not None:
        node, action = step
        actions.append(action)
    return actions[::-1]


def check_same_actions(a: StripsDomain, b: StripsDomain) -> None:
    """Raises PlanningError unless both have the same action names, in any order."""
    in_a, in_b = set(a.action_names), set(b.action_names)
    only_a = [n for n in a.action_names if n not in in_b]
    only_b = [n for n in b.action_names if n not in in_a]
    if only_a or only_b:
        raise PlanningError(
            f"Only domains over the same actions can be compared. In {a.name!r} alone: {only_a}; in {b.name!r} alone: "
            f"{only_b}. Rename the actions, or add the missing ones (an action may have no preconditions or effects)."
        )


# ----------------------------------------------------------------------------------------------------------------------
# Which proposition of a learned domain is which of the hidden one: compared by the times at which they are false.
#
# Propositions learned from traces have arbitrary names. Definition 1 uses a proposition only through the times at which
# it is known to be false: from an action that deletes it to the next one that adds it. So a learned proposition is the
# same as a hidden one if both are known false after the same traces, whatever their preconditions are.


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
        PlanningError: one domain has actions that the other lacks, or `initial_states` is empty.
        SearchBoundError: more than `max_states` joint states.
    """
    check_same_actions(learned, hidden)
    if initial_states is not None and not (initial_states := list(initial_states)):
        raise PlanningError(NO_STATES)
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
