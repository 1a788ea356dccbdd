"""Propositional STRIPS domains M = <F, A> and the validity of action traces (the paper's "Background")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class StripsError(ValueError):
    """A STRIPS domain, trace, configuration or checkpoint that contradicts itself, or that the model cannot read."""


@dataclass(frozen=True)
class StripsAction:
    """One action a: `pre(a)`, `add(a)` and `delete(a)` as sets of proposition names. All three may be empty.

    Raises:
        StripsError: one of the three is a single string, which would be read as the set of its letters.
    """

    name: str
    pre: frozenset[str] = frozenset()
    add: frozenset[str] = frozenset()
    delete: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for kind in ("pre", "add", "delete"):
            propositions = getattr(self, kind)
            if isinstance(propositions, str):
                raise StripsError(
                    f"Action {self.name!r}: {kind} must be a set of proposition names, got the string "
                    f"{propositions!r}; write {{{propositions!r}}}."
                )
            object.__setattr__(self, kind, frozenset(propositions))


@dataclass(frozen=True)
class StripsDomain:
    """A propositional domain M = <F, A>: named propositions, and actions with preconditions, add and delete lists.

    A *trace* is a sequence of actions, each given by its name or by its index in `actions`. There are two notions
    of validity: `is_positive` tests internal consistency, for an unknown initial state (Definition 1);
    `is_applicable` starts from a given state (the paper's "Background").

    Sets of propositions are also stored as integers, bit l for proposition l: `pre_masks`, `add_masks`, `delete_masks`,
    one integer per action.

    Raises:
        StripsError: a name is empty or used twice, an action names an unknown proposition, or adds and deletes the
            same one (the paper's state model and its Definition 1 disagree on the meaning).
    """

    propositions: tuple[str, ...]
    actions: tuple[StripsAction, ...]
    name: str = "domain"
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "propositions", tuple(self.propositions))
        object.__setattr__(self, "actions", tuple(self.actions))
        for kind, names in (("proposition", self.propositions), ("action", self.action_names)):
            if "" in names:
                raise StripsError(f"Domain {self.name!r}: an empty {kind} name; give every {kind} a name.")
            twice = sorted(n for n, count in Counter(names).items() if count > 1)
            if twice:
                raise StripsError(f"Domain {self.name!r}: {kind} names must be unique, got {twice} more than once.")
        known = set(self.propositions)
        for action in self.actions:
            unknown = sorted((action.pre | action.add | action.delete) - known)
            if unknown:
                raise StripsError(
                    f"Action {action.name!r} of domain {self.name!r} uses propositions {unknown} that the domain does "
                    f"not declare; it declares {list(self.propositions)}."
                )
            both = sorted(action.add & action.delete)
            if both:
                raise StripsError(
                    f"Action {action.name!r} of domain {self.name!r} both adds and deletes {both}; keep one of the two "
                    "(in PDDL, where adding wins, drop the delete effect)."
                )
        self._index.update({n: i for i, n in enumerate(self.action_names)})

    # ------------------------------------------------------------------------------------------- names and masks

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.actions)

    @cached_property
    def pre_masks(self) -> tuple[int, ...]:
        return tuple(self.mask(a.pre) for a in self.actions)

    @cached_property
    def add_masks(self) -> tuple[int, ...]:
        return tuple(self.mask(a.add) for a in self.actions)

    @cached_property
    def delete_masks(self) -> tuple[int, ...]:
        return tuple(self.mask(a.delete) for a in self.actions)

    @cached_property
    def _bits(self) -> dict[str, int]:
        return {p: 1 << i for i, p in enumerate(self.propositions)}

    def mask(self, propositions: Iterable[str]) -> int:
        """The set as an integer, bit l for proposition l. Raises StripsError for an unknown name."""
        wanted = set(propositions)
        unknown = sorted(wanted - self._bits.keys())
        if unknown:
            raise StripsError(f"Domain {self.name!r} has no propositions {unknown}; it has {list(self.propositions)}.")
        return sum(self._bits[p] for p in wanted)

    def unmask(self, mask: int) -> frozenset[str]:
        """The set that an integer represents; the inverse of `mask`."""
        return frozenset(p for i, p in enumerate(self.propositions) if mask >> i & 1)

    def encode(self, trace: Sequence[str | int]) -> list[int]:
        """The trace as action indices. Raises StripsError for an unknown name or an index out of range."""
        return [self._action(a, i) for i, a in enumerate(trace)]

    def decode(self, trace: Sequence[str | int]) -> list[str]:
        """The trace as action names. Raises StripsError like `encode`."""
        return [self.actions[i].name for i in self.encode(trace)]

    def _action(self, action: str | int, position: int) -> int:
        if isinstance(action, str):
            if action not in self._index:
                raise StripsError(
                    f"Unknown action {action!r} at position {position}; domain {self.name!r} has "
                    f"{_some(self.action_names)}."
                )
            return self._index[action]
        index = int(action)
        if not 0 <= index < len(self.actions):
            raise StripsError(
                f"Action index {index} at position {position} is out of range; domain {self.name!r} has "
                f"{len(self.actions)} actions, so 0 to {len(self.actions) - 1}."
            )
        return index

    # ------------------------------------------------------------- Definition 1: consistency without an initial state

    def falsified(self, trace: Sequence[str | int], failed: Sequence[int] | None = None) -> int:
        """The propositions, as a mask, that the last action affecting them has deleted: known to be false.

        Definition 1 depends on a trace only through this set; `advance` updates it by one action. `failed` as for
        `labels`.
        """
        state = 0
        for i, a in enumerate(self.encode(trace)):
            if failed is None or not failed[i]:
                state = self.advance(state, a)
        return state

    def advance(self, falsified: int, action: int) -> int:
        """The known-false propositions after one more action (by index), whether or not it was applicable."""
        return falsified & ~self.add_masks[action] | self.delete_masks[action]

    def labels(self, trace: Sequence[str | int], failed: Sequence[int] | None = None) -> list[int]:
        """Y(i) of Eq. 6 for every position: 1 where a precondition of a_i is known to be false, else 0.

        Args:
            trace: actions by name or index.
            failed: 1 where the action is known to have failed, so that it changed nothing; None: the trace does not
                tell, and every action counts as done, as in the paper.
        """
        state, out = 0, []
        for i, a in enumerate(self.encode(trace)):
            out.append(int(bool(self.pre_masks[a] & state)))
            if failed is None or not failed[i]:
                state = self.advance(state, a)
        return out

    def is_positive(self, trace: Sequence[str | int]) -> bool:
        """f_M(trace) = 0 in Definition 1: no precondition was last deleted. The empty trace is positive."""
        return not any(self.labels(trace))

    def next_actions(self, trace: Sequence[str | int], failed: Sequence[int] | None = None) -> list[str]:
        """The names of the possible next actions b, f_M(trace, b) = 0; none after a negative trace.

        A failed action (1 in `failed`) changed nothing, and may be one that is not possible.
        """
        labels = self.labels(trace, failed)
        if any(label and not (failed is not None and failed[i]) for i, label in enumerate(labels)):
            return []
        state = self.falsified(trace, failed)
        return [a.name for a, pre in zip(self.actions, self.pre_masks, strict=True) if not pre & state]

    # ------------------------------------------------------------------------- the state model S(P), states as masks

    def apply(self, state: int, action: int) -> int:
        """f(a, s) = (s | add) - del, on masks of *true* propositions, the action by index."""
        return (state | self.add_masks[action]) & ~self.delete_masks[action]

    def applicable(self, state: int) -> list[int]:
        """A(s): the indices of the actions whose preconditions are all true in the state (a mask)."""
        return [a for a, pre in enumerate(self.pre_masks) if pre & ~state == 0]

    def is_applicable(self, trace: Sequence[str | int], initial: Iterable[str]) -> bool:
        """Whether every action of the trace is applicable in turn, starting from the true propositions `initial`."""
        state = self.mask(initial)
        for a in self.encode(trace):
            if self.pre_masks[a] & ~state:
                return False
            state = self.apply(state, a)
        return True

    # ---------------------------------------------------------------------------------------------- as data, as text

    def to_dict(self) -> dict[str, Any]:
        """The domain as JSON-ready data, sets sorted by the order of `propositions`."""
        return {
            "name": self.name,
            "propositions": list(self.propositions),
            "actions": [
                {"name": a.name, "pre": self._sorted(a.pre), "add": self._sorted(a.add), "del": self._sorted(a.delete)}
                for a in self.actions
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StripsDomain:
        """The inverse of `to_dict`. Raises StripsError if a key is missing or has a wrong value."""
        try:
            actions = tuple(StripsAction(a["name"], a["pre"], a["add"], a["del"]) for a in data["actions"])
            return cls(tuple(data["propositions"]), actions, data.get("name", "domain"))
        except KeyError as error:
            raise StripsError(f"A domain needs propositions and actions (name, pre, add, del); no {error}.") from None
        except TypeError as error:
            raise StripsError(
                "A domain is a dictionary with a list of names, propositions, and a list of dictionaries, actions "
                f"(name; pre, add, del: lists of names), as to_dict gives it: {error}."
            ) from error

    def _sorted(self, propositions: frozenset[str]) -> list[str]:
        return [p for p in self.propositions if p in propositions]

    def __str__(self) -> str:
        """As in Figure 1 of the paper."""
        lines = [f"Domain {self.name}", "Atoms: " + ", ".join(self.propositions), "Actions:"]
        for a in self.actions:
            lines.append(f"  {a.name}:")
            for label, atoms in (("pre", a.pre), ("add", a.add), ("del", a.delete)):
                lines.append(f"    {label}({a.name}) = [{', '.join(self._sorted(atoms))}]")
        return "\n".join(lines)


def _some(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
