"""A propositional STRIPS problem P = <F, A, I, G> (STRIPS Transformer paper, "Background"), and its states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain


class PlanningError(ValueError):
    """What `hf_mech.planning` refuses: PDDL, domains, traces, programs, settings, and plans without a planner.

    Attributes:
        source: of PDDL: "domain" or "problem", or the path of the file; else None.
        line, column: the place in it, both from 1; None if the parser does not report it.
    """

    def __init__(
        self, message: str, source: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.source, self.line, self.column = source, line, column


class SearchBoundError(PlanningError):
    """A domain with more states than the search may store."""


@dataclass(frozen=True)
class CompilationNote:
    """A feature of a PDDL file that STRIPS does not have, and its replacement.

    Attributes:
        feature: the name of the feature, for example "conditional effects (when)".
        where: the actions of the PDDL file that use it, or "the goal", in the order of the file.
        treatment: the replacement, in one sentence.
    """

    feature: str
    where: tuple[str, ...]
    treatment: str

    def __str__(self) -> str:
        where = f" in {', '.join(self.where)}" if self.where else ""
        return f"{self.feature}{where}: {self.treatment}"


@dataclass(frozen=True)
class StripsProblem:
    """A domain M = <F, A> with the initially true propositions (I) and those to be made true (G).

    Attributes:
        notes: the features of the PDDL file that were compiled away, see `read_pddl`; not part of `==`.
        variants: for every action that is one of several versions of an action of the PDDL file, the name of that
            action, `{"move#1(a,b)": "move(a,b)", ...}`; not part of `==`.

    Raises:
        StripsError: `initial` or `goal` names a proposition that the domain does not have.
    """

    domain: StripsDomain
    initial: frozenset[str] = frozenset()
    goal: frozenset[str] = frozenset()
    notes: tuple[CompilationNote, ...] = field(default=(), compare=False, repr=False)
    variants: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", frozenset(self.initial))
        object.__setattr__(self, "goal", frozenset(self.goal))
        self.domain.mask(self.initial | self.goal)

    def original_names(self, plan: Iterable[str]) -> list[str]:
        """A plan or trace under the names of the PDDL file: every version of an action under that action's name."""
        return [self.variants.get(action, action) for action in plan]


def state_after(
    domain: StripsDomain, trace: Sequence[str | int], initial: Iterable[str] | None = None
) -> frozenset[str]:
    """The propositions that are true after a trace.

    Args:
        trace: actions, by name or index.
        initial: the propositions that are true before it. None: unknown, as in Definition 1. Every proposition counts
            as true until an action deletes it, so the trace is possible exactly if it is positive.

    Raises:
        PlanningError: an action that is not possible; names its position and its false preconditions.
        StripsError: an action or a proposition that the domain does not have.
    """
    refuse_text("trace", trace)
    state = domain.mask(domain.propositions if initial is None else refuse_text("initial", initial))
    encoded = domain.encode(trace)
    for position, action in enumerate(encoded):
        if false := domain.pre_masks[action] & ~state:
            names = domain.decode(encoded)
            needs = sorted(domain.unmask(false))
            raise PlanningError(
                f"The trace is not possible in domain {domain.name!r}: {names[position]!r} at position {position} "
                f"needs {needs}, false after {names[:position]}. Possible there: "
                f"{domain.decode(domain.applicable(state))}."
            )
        state = domain.apply(state, action)
    return domain.unmask(state)


def common_start(
    domain: StripsDomain,
    traces: Iterable[Sequence[Any]],
    labels: Iterable[Sequence[int]] | None = None,
    *,
    noise: float = 0.0,
) -> frozenset[str]:
    """The propositions that are true where the traces start, if all of them start in the same state.

    A trace that needs a proposition before it changes it tells that it was true at the start. Nothing else tells it, as
    an action may add what is true already; so all other propositions count as false.

    Args:
        traces: actions by name, `stack(a,b)` or `stack a b`, by index, or each a `GroundAction`. Those that the
            domain does not have are passed over.
        labels: 1 where an action failed and changed nothing.
        noise: the share of traces that may be wrong: of those that need or add a proposition before they change it
            otherwise, more must need it.
    """
    needed, first = Counter[int](), Counter[int]()
    indices: dict[Any, int] = {name: index for index, name in enumerate(domain.action_names)}
    for trace, failed in zip(traces, labels, strict=True) if labels is not None else ((t, None) for t in traces):
        seen = 0
        for position, action in enumerate(trace):
            index = action if isinstance(action, int) else indices.get(_ground_name(action))
            if index is None or (failed is not None and failed[position]):
                continue
            pre, add = domain.pre_masks[index], domain.add_masks[index]
            needed[pre & ~seen] += 1
            first[(pre | add) & ~seen] += 1
            seen |= pre | add | domain.delete_masks[index]

    def votes(masks: Counter[int]) -> Counter[str]:
        count = Counter[str]()
        for mask, number in masks.items():
            count.update(dict.fromkeys(domain.unmask(mask), number))
        return count

    those, all_ = votes(needed), votes(first)
    return frozenset(proposition for proposition, count in those.items() if count > noise * all_[proposition])


def _ground_name(action: Any) -> str:
    name, *objects = str(action).split()
    return f"{name}({','.join(objects)})" if objects else name


def begin_from(domain: StripsDomain, initial: Iterable[str], name: str = "begin") -> StripsDomain:
    """The domain with one more action, `begin`, that stands before all others and tells where they start.

    Definition 1 knows no initial state. In a trace that starts with `begin` it does: that action deletes whatever is
    not true initially, and itself is possible only once. Verdicts, models, plans (`after=["begin"]`) and the processor
    of a language model's calls then start from that state.

    Args:
        domain: a domain without such an action.
        initial: the propositions that are true in the initial state.
        name: of the new action; it needs a proposition of the same name.

    Raises:
        StripsError: an unknown proposition, or a name that the domain uses.
    """
    false = domain.unmask(~domain.mask(initial))
    begin = StripsAction(name, frozenset({name}), frozenset(), false | {name})
    return StripsDomain((*domain.propositions, name), (*domain.actions, begin), domain.name)


def refuse_text(name: str, value: Any) -> Any:
    """The value; raises PlanningError for a single string, which would be read letter by letter."""
    if isinstance(value, str):
        raise PlanningError(f"{name} must be a list of names, got the string {value!r}; write [{value!r}].")
    return value


def reachable_states(problem: StripsProblem) -> list[int]:
    """Every state that some applicable action sequence reaches, as masks, breadth first from the initial state."""
    domain = problem.domain
    states = [domain.mask(problem.initial)]
    seen = set(states)
    for state in states:  # grows during the loop
        for action in domain.applicable(state):
            successor = domain.apply(state, action)
            if successor not in seen:
                seen.add(successor)
                states.append(successor)
    return states
