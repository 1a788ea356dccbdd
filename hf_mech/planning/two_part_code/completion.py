"""From the shortest code to the whole domain: the preconditions and delete effects that it had no need to name.

The shortest code says once what follows from it. If two preconditions of an action are always false together in the
training traces, it pays for one of them. A trace from another initial state may delete the other one alone. So the
domain is completed by the invariants that the walks show: an action is applicable only where an atom is true, or only
where it is false.

- Only where it is true: the atom becomes a precondition.
- Only where it is false, and the action does not add it: the action deletes it.

A cell that would make more labels wrong than there were, or than `label_noise` explains, is left out: it makes a walk
impossible that begins before the atom is touched.

An invariant is believed if chance would hardly show it. A *stretch* is the part of a walk between two effects on the
atom. Let the action be applicable somewhere in a share q of the stretches of one value, and in none of the n stretches
of the other: were the atom of no account, the chance of that is (1 - q)^n. Values from the start of a trace are left
out, as all traces share their few initial states.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.two_part_code.code import TwoPartCode
from hf_mech.planning.two_part_code.guesses import inapplicable, speaking
from hf_mech.planning.two_part_code.kernel import DELETE, NOTHING, TRUE, Chain, Guess, Positions, chain_of


def complete(guess: Guess, data: Positions, code: TwoPartCode) -> Guess:
    """The guess with every precondition and delete effect that the walks show, for atoms that can forbid an action.

    Args:
        guess: with the shortest code.
        data: the traces that it explains.
        code: `significance` is the largest chance at which an invariant is believed.
    """
    now, bound = guess.copy(), math.log(code.significance)
    most = max(_wrong(now, data), math.ceil(code.label_noise * len(data.starts)))
    while True:
        chain = chain_of(now.copy(), data)
        before = int(now.pre.sum() + (now.effect == DELETE).sum())
        for atom in np.flatnonzero(speaking(now)):
            (true, when_true), (false, when_false) = _stretches(chain, data, int(atom))
            if not true or not false:
                continue
            with np.errstate(divide="ignore"):  # an action that is applicable in every stretch: the chance is 0
                only_true = false * np.log1p(-when_true / true)
                only_false = true * np.log1p(-when_false / false)
            wanted = now.copy()
            wanted.pre[atom, (when_false == 0) & (only_true < bound)] = 1
            deleted = (when_true == 0) & (only_false < bound) & (now.effect[atom] == NOTHING)
            wanted.effect[atom, deleted] = DELETE
            now = wanted if _wrong(wanted, data) <= most else _possible(now, wanted, data, most)
        if now.pre.sum() + (now.effect == DELETE).sum() == before:
            return now


def _possible(now: Guess, wanted: Guess, data: Positions, most: int) -> Guess:
    """The guess with those of the wanted cells, one by one, that leave at most so many labels wrong."""
    for name in ("pre", "effect"):
        for cell in np.argwhere(getattr(wanted, name) != getattr(now, name)):
            tried = now.copy()
            getattr(tried, name)[*cell] = getattr(wanted, name)[*cell]
            if _wrong(tried, data) <= most:
                now = tried
    return now


def _wrong(guess: Guess, data: Positions) -> int:
    """Positions whose label the guess gets wrong, whatever the initial state."""
    return int((inapplicable(guess, data) != data.labels).sum())


def _stretches(chain: Chain, data: Positions, atom: int) -> list[tuple[int, NDArray[np.int64]]]:
    """The stretches in which an atom is true, and those in which it is false.

    Returns:
        For each value, the number of stretches, and in how many of them each action is applicable as far as the other
        atoms go, [actions].
    """
    touches = chain.effect[atom, data.actions] != NOTHING
    number = np.cumsum(touches) - touches  # grows behind every effect
    opens = np.cumsum(touches) - touches > np.repeat(number[data.starts], data.ends[data.starts] - data.starts)
    walked = opens & (data.labels == 0) & (chain.cover[np.arange(len(touches)), data.actions] == 0)
    places = np.flatnonzero(walked)
    if not len(places):
        return [(0, np.zeros(0, np.int64))] * 2
    first = np.flatnonzero(np.diff(number[places], prepend=-1))
    value = chain.unmet[atom, places]
    own = np.outer(value != TRUE, chain.pre[atom])
    applicable = np.logical_or.reduceat(chain.cover[places] - own == 0, first, axis=0)
    true = value[first] == TRUE
    return [(int(kind.sum()), applicable[kind].sum(0)) for kind in (true, ~true)]
