"""Decides by search if two domains accept the same action traces; names of propositions may differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.models.strips.strips_errors import DomainError


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
        DomainError: one domain has actions that the other lacks, or `initial_states` is empty.
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
        raise DomainError(NO_STATES)
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
    """Raises DomainError unless both have the same action names, in any order."""
    in_a, in_b = set(a.action_names), set(b.action_names)
    only_a = [n for n in a.action_names if n not in in_b]
    only_b = [n for n in b.action_names if n not in in_a]
    if only_a or only_b:
        raise DomainError(
            f"Only domains over the same actions can be compared. In {a.name!r} alone: {only_a}; in {b.name!r} alone: "
            f"{only_b}. Rename the actions, or add the missing ones (an action may have no preconditions or effects)."
        )
