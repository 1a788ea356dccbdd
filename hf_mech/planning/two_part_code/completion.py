"""From the shortest code to the whole domain: all preconditions and delete effects that the walks support.

The shortest code says once what follows from it. If two preconditions of an action are always false together in the
training traces, it pays for one. From another initial state they need not be. So every precondition and every delete
effect that no walk contradicts is added, if the walks had the chance to contradict it:

- an atom is a precondition of an action that was never taken where the atom was false. By the walks' own assumption,
  each choice uniform, the chance of that is the product of 1 - 1 / |S(t)| over those positions; it must be small.
- an action deletes an atom that was false whenever it was taken, often enough, and that it does not add.

No step makes a walk impossible, so a label that was right remains right.
"""

from __future__ import annotations

import math

import numpy as np

from .code import TwoPartCode
from .guesses import speaking
from .kernel import DELETE, NOTHING, Guess, Positions, chain_of


def complete(guess: Guess, data: Positions, code: TwoPartCode) -> Guess:
    """The guess with everything that the walks support.

    Args:
        guess: with the shortest code.
        data: the traces that it explains.
        code: `significance` and `least_occurrences` say what support is.
    """
    pre, effect, _, _ = now = guess.copy()
    total, bound = pre.shape[1], math.log(code.significance)
    while True:
        before = pre.sum() + (effect == DELETE).sum()
        chain = chain_of(now.copy(), data)
        free = chain.cover == 0
        walked = (data.labels == 0) & free[np.arange(len(data.actions)), data.actions]  # the others are mislabelled
        choices = np.maximum((total - chain.forbidden)[:, None] + ~free, 2)  # if the action were one of them
        never = np.log1p(-1 / choices)
        taken = np.bincount(data.actions[walked], minlength=total)
        for atom in np.flatnonzero(speaking(now)):
            unmet = (chain.unmet[atom] != 0) & walked
            taken_unmet = np.bincount(data.actions[unmet], minlength=total)
            pre[atom] |= (taken_unmet == 0) & (never[unmet].sum(0) < bound)
            always = (taken >= code.least_occurrences) & (taken_unmet == taken)
            effect[atom, always & (effect[atom] == NOTHING)] = DELETE
        if pre.sum() + (effect == DELETE).sum() == before:
            return now
