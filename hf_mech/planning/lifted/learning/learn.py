"""`learn_lifted_domain`: from the traces of a log to a lifted domain.

1. The types of objects, and what can happen to tuples of them (`events.py`).
2. The gaps between an action and the next ones, of all traces (`gaps.py`), and the rules they support (`rules.py`).
3. The rules that make the code shortest, for several chances of errors in the log (`code.py`, `choose.py`).
4. Static relations (`statics.py`), and the whole as a domain with names (`build.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.models.strips.strips_lifted import LiftedAtom, LiftedDomain, ground_name
from hf_mech.planning.lifted.learning.build import build_domain, type_names
from hf_mech.planning.lifted.learning.choose import Choice, Chosen
from hf_mech.planning.lifted.learning.code import broken_steps, universe_of
from hf_mech.planning.lifted.learning.events import Kind, Steps, kinds_of, read_steps, touches_of
from hf_mech.planning.lifted.learning.exchange import Exchange
from hf_mech.planning.lifted.learning.gaps import gaps_of
from hf_mech.planning.lifted.learning.prune import independent
from hf_mech.planning.lifted.learning.rules import Evidence, Rule, Search
from hf_mech.planning.lifted.learning.statics import static_relations
from hf_mech.planning.lifted.pddl import DIFFERENT, to_pddl
from hf_mech.planning.problem import PlanningError


def _below(most: float) -> Callable[[Any], bool]:
    """Whether a value is a number of 0 or more, below `most`."""
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < most


@dataclass(frozen=True)
class LiftedCode:
    """How the domain is chosen.

    Args:
        most_arity: the arguments of a predicate at most.
        epsilons: the chances of an error in a step that are tried; the shortest code decides between them. 0: the log
            is right.
        margin: by what share of its length the code with errors must be shorter than that without; if the first one is
            not, the others are not tried.
        walks: what the choice of an action among the allowed ones is worth: 1 for walks and ordinary logs; less, such
            as 0.01, for the plans of an expert with failures among them. An expert leaves out much that is possible.
        search: how candidates are found, and the price of a rule.
        most_steps: steps that the code is counted on, the first ones of the log; evidence comes from all.
        failures: "any", or "uniform" if failed actions are drawn evenly from the forbidden ones, as in the STRIPS
            paper's data. Then they tell a rule from what an expert merely never does; the search takes longer.

    Raises:
        PlanningError: a number out of its range.
    """

    most_arity: int = 3
    epsilons: tuple[float, ...] = (0.0, 0.03, 0.01, 0.08)
    margin: float = 0.015
    walks: float = 1.0
    search: Search = field(default_factory=Search)
    most_steps: int = 4_000
    failures: str = "any"

    def __post_init__(self) -> None:
        for name, least, most in (("most_arity", 0, 3), ("most_steps", 1, None)):
            count: Any = getattr(self, name)
            wrong = isinstance(count, bool) or not isinstance(count, int) or count < least
            if wrong or (most is not None and count > most):
                limits = f"{least} to {most}" if most is not None else f"{least} or more"
                raise PlanningError(f"{name} must be a whole number, {limits}, got {count!r}.")
        given: Any = self.epsilons
        if not isinstance(given, Sequence) or not given or not all(map(_below(0.5), given)):
            raise PlanningError(f"epsilons are one or more chances, 0 or more and below 0.5, got {given!r}.")
        if not _below(1)(self.margin):
            raise PlanningError(f"margin must be a number of 0 or more, below 1, got {self.margin!r}.")
        if not 0 < self.walks <= 1:
            raise PlanningError(f"walks must be above 0 and at most 1, got {self.walks!r}.")
        if self.failures not in ("any", "uniform"):
            raise PlanningError(f"failures must be 'any' or 'uniform', got {self.failures!r}.")


@dataclass(frozen=True)
class Support:
    """A precondition, and what the log says of it.

    Attributes:
        action: the schema.
        atom: the precondition, over the action's places.
        needed: how often the action was done while the atom was known to be true, an action having added it.
        expected: how often it would have been done while the atom was false, were it no precondition.
        broken: how often it was.
        examples: some steps of the first kind, as (trace, position).
        exceptions: some of the last kind.
    """

    action: str
    atom: LiftedAtom
    expected: float
    broken: int
    needed: int
    examples: tuple[tuple[int, int], ...]
    exceptions: tuple[tuple[int, int], ...]


class Explanation(list[Support]):
    """The supports of all preconditions; as text, a table."""

    def __str__(self) -> str:
        lines = ["action | needs | supported by | expected if not needed | broken | for example | exceptions"]
        for own in self:
            atom = f"{own.atom.predicate}({', '.join(f'?{place + 1}' for place in own.atom.places)})"
            shown = [", ".join(f"{t}:{p}" for t, p in steps) for steps in (own.examples, own.exceptions)]
            lines.append(
                f"{own.action} | {atom} | {own.needed} | {own.expected:.0f} | {own.broken} | {' | '.join(shown)}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class LearnedLiftedDomain:
    """A lifted domain, and what the log says of it.

    Attributes:
        domain: the domain. A predicate is named after the actions that make it true; `may-...` are static.
        facts: the static atoms that are true of the objects seen.
        objects: the objects seen, by type.
        bits: the length of the code, of the steps that it was counted on and of the rules.
        epsilon: the chance of an error in a step that gave the shortest code.
        exceptions: the steps that the domain cannot explain, as (trace, position): done although it forbids them.
        steps: the log as arrays.
        evidence: of every rule.
    """

    domain: LiftedDomain
    facts: frozenset[tuple[str, tuple[str, ...]]]
    objects: Mapping[str, tuple[str, ...]]
    bits: float
    epsilon: float
    exceptions: tuple[tuple[int, int], ...]
    steps: Steps
    kinds: tuple[Kind, ...]
    evidence: Mapping[Rule, Evidence]
    behind: Mapping[tuple[str, LiftedAtom], Sequence[Rule]]

    def to_pddl(self) -> str:
        """The domain as a PDDL file."""
        return to_pddl(self.domain)

    def verdicts(self, trace: Iterable[Any], failed: Sequence[int] | None = None) -> list[int]:
        """1 at each action that contradicts the trace before it by Definition 1, else 0; any objects.

        Args:
            trace: ground actions.
            failed: 1 where an action is known to have failed, so that it changed nothing.

        Raises:
            StripsError: an action that the log does not have.
        """
        return self.domain.labels(trace, failed)

    def ground(
        self, objects: Mapping[str, Iterable[str]] | None = None, facts: Iterable[Any] | None = None
    ) -> StripsDomain:
        """The domain over some objects.

        Args:
            objects: by type; None: those of the log.
            facts: the true static atoms; None: those of the log, which say nothing of other objects.

        Raises:
            PlanningError: a type that the log does not have; static relations of objects that it does not have, and no
                facts.
            StripsError: no action has objects of its types.
        """
        given = {type_: tuple(own) for type_, own in (self.objects if objects is None else objects).items()}
        if unknown := sorted(set(given) - set(self.objects)):
            raise PlanningError(
                f"The log has no types {unknown}, only {list(self.objects)}; name the objects' types so."
            )
        seen = {each for own in self.objects.values() for each in own}
        every = [each for own in given.values() for each in own]
        asked = sorted(self.domain.static - {DIFFERENT})
        if facts is None and asked and (new := sorted(set(every) - seen)):
            wanted = ", ".join(ground_name(name, self.domain.predicates[name]) for name in asked)
            raise PlanningError(
                f"The log says nothing of the objects {new}; give facts=[...], the true atoms of {wanted}."
            )
        true = set(self.facts if facts is None else facts)
        true |= {(DIFFERENT, pair) for pair in permutations(every, 2)}
        return self.domain.ground(given, true)

    def explain(self, most: int = 3) -> Explanation:
        """For each precondition the steps that support it and those that break it, `most` of each as examples."""
        found = Explanation()
        for (action, atom), rules in self.behind.items():
            own = [self.evidence[rule] for rule in rules if rule in self.evidence]
            adds, deletes = rules[0].adds, 0
            for rule in rules:
                deletes |= 1 << rule.delete
            touches = touches_of(self.steps, self.kinds[rules[0].kind])
            true, false = broken_steps(touches, self.steps, adds, deletes, rules[0].need)
            found.append(
                Support(
                    action,
                    atom,
                    sum(each.expected for each in own),
                    len(false),
                    len(true),
                    tuple(self._place(step) for step in true[:most]),
                    tuple(self._place(step) for step in false[:most]),
                )
            )
        return found

    def _place(self, step: int) -> tuple[int, int]:
        trace = int(self.steps.trace[step])
        return trace, int(step - self.steps.starts[trace])

    def __repr__(self) -> str:
        return (
            f"LearnedLiftedDomain({len(self.domain.predicates)} predicates, {len(self.domain.actions)} actions, "
            f"{len(self.steps.action)} steps, {len(self.exceptions)} exceptions, {self.bits:,.0f} bits)"
        )


def learn_lifted_domain(
    traces: Iterable[Iterable[Any]],
    labels: Iterable[Sequence[int]] | None = None,
    *,
    code: LiftedCode | None = None,
    name: str = "learned",
    progress: bool = True,
) -> LearnedLiftedDomain:
    """The lifted domain with the shortest two-part code of the log.

    Args:
        traces: lists of actions with their objects: `"stack b1 b2"`, `"stack(b1,b2)"`, `("stack", "b1", "b2")` or a
            `GroundAction`.
        labels: 1 where an action failed and changed nothing, at any position; None: none failed.
        code: how the domain is chosen; None: the defaults.
        name: of the domain.
        progress: whether to show a progress bar.

    Raises:
        PlanningError: no traces, an action that cannot be read, a schema with different numbers of objects, labels
            that do not fit, or a `code` that is none.
    """
    code = LiftedCode() if code is None else code
    if not isinstance(code, LiftedCode):
        raise PlanningError(f"code must be a LiftedCode, got {code!r}.")
    steps = read_steps(traces, labels)
    kinds = kinds_of(steps, code.most_arity)
    some = int(np.searchsorted(steps.starts, 0, side="right"))  # traces, of which the last is not empty
    sample = steps.first(max(some, int(np.searchsorted(steps.starts, code.most_steps, side="right")) - 1))
    with tqdm(total=len(kinds) + len(code.epsilons), desc="lifted domain", disable=not progress) as bar:
        gaps = []
        for kind in kinds:
            gaps.append(gaps_of(steps, kind, touches_of(steps, kind)))
            bar.update()
        touches = [touches_of(sample, kind) for kind in kinds]
        search = Exchange if code.failures == "uniform" else Choice
        choice = search(sample, kinds, touches, gaps, universe_of(sample, kinds, touches), code.search)
        best = _best(choice, code, bar)
    together = {number: set(own.done.tolist()) for number, own in enumerate(touches)}
    rules = {rule: best.rules[rule] for rule in independent(best.rules, together)}
    relations, different = static_relations(steps)
    domain, facts, behind = build_domain(steps, kinds, rules, relations, different, name)
    forbidden = np.zeros(len(steps.action), bool)
    for number, kind in enumerate(kinds):
        if own := [rule for rule in rules if rule.kind == number]:
            every = touches_of(steps, kind)
            for rule in own:
                forbidden[broken_steps(every, steps, rule.adds, 1 << rule.delete, rule.need)[1]] = True
    wrong = np.flatnonzero(forbidden & ~steps.failed)
    place = [(int(steps.trace[step]), int(step - steps.starts[steps.trace[step]])) for step in wrong.tolist()]
    names = dict(zip(type_names(steps), steps.objects_of.values(), strict=True))
    return LearnedLiftedDomain(
        domain,
        frozenset(facts),
        {type_: tuple(steps.objects[each] for each in own) for type_, own in names.items()},
        best.bits,
        best.epsilon,
        tuple(place),
        steps,
        tuple(kinds),
        rules,
        behind,
    )


def _best(choice: Choice, code: LiftedCode, bar: Any) -> Chosen:
    """The domain with the shortest code. A log counts as right unless errors make the code clearly shorter."""
    best: Chosen | None = None
    for epsilon in code.epsilons:
        chosen = choice.choose(epsilon, code.walks)
        bar.update()
        errors = int((~chosen.right & ~choice.steps.failed).sum())
        if best is None or (errors and chosen.bits < best.bits * (1 - code.margin * (best.epsilon == 0))):
            best = chosen
        elif best.epsilon == 0:
            break
        bar.set_postfix_str(f"{best.bits:,.0f} bits")
    bar.update(bar.total - bar.n)
    assert best is not None
    return best
