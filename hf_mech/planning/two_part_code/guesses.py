"""What a guess says: its domain, as symbols and as theta, and the actions that it calls inapplicable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.two_part_code.kernel import ADD, DELETE, NOTHING, Guess, Positions, chain_of


def inapplicable(guess: Guess, data: Positions) -> NDArray[np.bool_]:
    """Whether each position's action is inapplicable by the guessed domain, whatever the initial state (Eq. 6), [N]."""
    everything_true = np.zeros((1, len(guess.pre)), np.uint8), np.zeros(len(data.starts), np.int64)
    chain = chain_of(Guess(guess.pre.copy(), guess.effect.copy(), *everything_true), data)
    found: NDArray[np.bool_] = chain.cover[np.arange(len(data.actions)), data.actions] > 0
    return found


def theta_of(guess: Guess) -> NDArray[np.float32]:
    """The guessed domain as theta of Eq. 8-10, [propositions, actions, 3]."""
    return np.stack([guess.pre == 1, guess.effect != NOTHING, guess.effect == DELETE], axis=-1).astype(np.float32)


def speaking(guess: Guess) -> NDArray[np.bool_]:
    """The propositions that can forbid an action: a precondition, and deleted by some action, [propositions]."""
    used: NDArray[np.bool_] = guess.pre.any(1) & (guess.effect == DELETE).any(1)
    return used


def domain_of(guess: Guess, actions: Sequence[str], name: str, *, keep_idle: bool = False) -> StripsDomain:
    """The guessed domain, its propositions named p0, p1, ...

    Args:
        guess: the cells.
        actions: their names.
        name: of the domain.
        keep_idle: whether to keep the propositions that can forbid nothing.
    """
    used = speaking(guess) | keep_idle
    names = [f"p{number}" for number in range(int(used.sum()))]

    def where(cell: NDArray[np.bool_]) -> frozenset[str]:
        return frozenset(name for name, here in zip(names, cell[used], strict=True) if here)

    return StripsDomain(
        tuple(names),
        tuple(
            StripsAction(
                action,
                where(guess.pre[:, a] == 1),
                where(guess.effect[:, a] == ADD),
                where(guess.effect[:, a] == DELETE),
            )
            for a, action in enumerate(actions)
        ),
        name,
    )
