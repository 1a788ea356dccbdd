"""Do two domains accept the same action traces? Decided by search, whatever their propositions are called."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.strips.strips_domain import StripsDomain
from ..models.strips.strips_errors import DomainError


@dataclass(frozen=True)
class Equivalence:
    """What the search found.

    Attributes:
        equivalent: True: every trace is positive in both or in neither. False: `trace` is not. None: undecided, the
            bound was hit first.
        trace: a shortest trace that is positive in one domain and negative in the other, as action names; its last
            action makes the difference.
        pairs: how many pairs of known-false sets were reached.
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


def find_distinguishing_trace(a: StripsDomain, b: StripsDomain, max_pairs: int = 1_000_000) -> Equivalence:
    """Decide whether `a` and `b` have the same positive traces (Definition 1), or find a shortest trace that differs.

    All that Definition 1 remembers of a trace is which propositions are known to be false, so a domain is a
    deterministic automaton over such sets. The two automata are walked together, breadth first; a trace that is
    negative in both stays so and is not followed.

    Args:
        a, b: domains with the same action names, in any order. Their propositions need have nothing in common.
        max_pairs: give up, with `equivalent=None`, rather than store more pairs than this.

    Raises:
        DomainError: one domain has actions that the other lacks.
    """
    _same_actions(a, b)
    rows = [
        (i, a.pre_masks[i], ~a.add_masks[i], a.delete_masks[i], b.pre_masks[j], ~b.add_masks[j], b.delete_masks[j])
        for i, j in enumerate(b.encode(a.action_names))
    ]
    start = (0, 0)
    came_from: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {start: None}
    queue = [start]
    for pair in queue:  # grows while we walk it
        false_a, false_b = pair
        for action, pre_a, keep_a, delete_a, pre_b, keep_b, delete_b in rows:
            negative_a, negative_b = pre_a & false_a, pre_b & false_b
            if negative_a and negative_b:
                continue
            if negative_a or negative_b:
                return Equivalence(False, a.decode([*_path(came_from, pair), action]), len(came_from))
            successor = (false_a & keep_a | delete_a, false_b & keep_b | delete_b)
            if successor not in came_from:
                if len(came_from) >= max_pairs:
                    return Equivalence(None, None, len(came_from))
                came_from[successor] = (pair, action)
                queue.append(successor)
    return Equivalence(True, None, len(came_from))


def _path(came_from: dict[tuple[int, int], tuple[tuple[int, int], int] | None], pair: tuple[int, int]) -> list[int]:
    """The actions that lead from the beginning to the pair."""
    actions = []
    while (step := came_from[pair]) is not None:
        pair, action = step
        actions.append(action)
    return actions[::-1]


def _same_actions(a: StripsDomain, b: StripsDomain) -> None:
    only_a = [n for n in a.action_names if n not in b.action_names]
    only_b = [n for n in b.action_names if n not in a.action_names]
    if only_a or only_b:
        raise DomainError(
            f"Only domains over the same actions can be compared. In {a.name!r} alone: {only_a}; in {b.name!r} alone: "
            f"{only_b}. Rename the actions, or add the missing ones (an action may have no preconditions or effects)."
        )
