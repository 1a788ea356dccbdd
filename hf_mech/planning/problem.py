"""A propositional STRIPS problem P = <F, A, I, G> (STRIPS Transformer paper, "Background")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..models.strips.strips_domain import StripsDomain


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
        DomainError: `initial` or `goal` names a proposition that the domain does not have.
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
