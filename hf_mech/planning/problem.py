"""A propositional STRIPS problem P = <F, A, I, G> (STRIPS Transformer paper, "Background")."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.strips.strips_domain import StripsDomain


@dataclass(frozen=True)
class StripsProblem:
    """A domain M = <F, A> with the initially true propositions (I) and those to be made true (G).

    Raises:
        DomainError: `initial` or `goal` names a proposition that the domain does not have.
    """

    domain: StripsDomain
    initial: frozenset[str] = frozenset()
    goal: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", frozenset(self.initial))
        object.__setattr__(self, "goal", frozenset(self.goal))
        self.domain.mask(self.initial | self.goal)


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
