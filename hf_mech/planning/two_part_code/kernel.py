"""The annealing of `learn_domain`, compiled: Metropolis moves over the cells of a domain, the cost of each incremental.

A *cell* is an atom and an action: whether the atom is a precondition, and which effect the action has on it. A move
changes one cell or two. Its cost follows from the positions where something changes: for a precondition, those before
which the atom is false; for an effect, those between an occurrence of the action and the next effect on the same atom.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F")
NOTHING, ADD, DELETE, FLIP = 0, 1, 2, -1
_PROPOSALS = 3


class Positions(NamedTuple):
    """All traces, one behind another: N positions, A actions.

    Attributes:
        actions: the action at every position, [N].
        labels: 1 where it is inapplicable, [N].
        ends: the end of the position's trace, [N].
        places, first: the positions of each action in order, [N]; those of action a begin at `first[a]`, [A + 1].
        log2: the logarithms of 0 (never used) to A, [A + 1].
    """

    actions: NDArray[np.int64]
    labels: NDArray[np.uint8]
    ends: NDArray[np.int64]
    places: NDArray[np.int64]
    first: NDArray[np.int64]
    log2: NDArray[np.float64]


class Chain(NamedTuple):
    """The cells of L atoms, and what follows from them.

    Attributes:
        pre: 1 where the atom is a precondition, [L, A].
        effect: `NOTHING`, `ADD` or `DELETE`, [L, A].
        listed, number: the actions that have the atom as a precondition, [L, A], and how many they are, [L].
        unmet: 1 where the atom is known to be false before the position (Definition 1), [L, N].
        cover: how many atoms forbid the action there: preconditions that are known to be false, [A, N].
        forbidden: how many actions at least one atom forbids there, [N].
    """

    pre: NDArray[np.uint8]
    effect: NDArray[np.uint8]
    listed: NDArray[np.int64]
    number: NDArray[np.int64]
    unmet: NDArray[np.uint8]
    cover: NDArray[np.int16]
    forbidden: NDArray[np.int64]


def _compiled(function: F) -> F:
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled


@_compiled
def word(dice: Any) -> Any:
    """The next 64 random bits (SplitMix64, Steele, Lea and Flood 2014), of a stream that is one number."""
    dice[0] += np.uint64(0x9E3779B97F4A7C15)
    z = dice[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_compiled
def below(dice: Any, n: int) -> Any:
    """A random number in 0 to n - 1."""
    return np.int64(((word(dice) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@_compiled
def uniform(dice: Any) -> float:
    """A random number between 0 and 1, never 0."""
    return (float(word(dice) >> np.uint64(11)) + 0.5) / 9007199254740992.0


@_compiled
def chain_of(pre: Any, effect: Any, data: Any) -> Any:
    """The chain that begins with these cells."""
    atoms, total = pre.shape
    listed, number = np.zeros((atoms, total), np.int64), np.zeros(atoms, np.int64)
    unmet = np.zeros((atoms, len(data.actions)), np.uint8)
    cover, forbidden = np.zeros((total, len(data.actions)), np.int16), np.zeros(len(data.actions), np.int64)
    for atom in range(atoms):
        for action in range(total):
            if pre[atom, action]:
                listed[atom, number[atom]] = action
                number[atom] += 1
        false_ = 0
        for t in range(len(data.actions)):
            unmet[atom, t] = false_
            for k in range(number[atom] if false_ else 0):
                forbidden[t] += cover[listed[atom, k], t] == 0
                cover[listed[atom, k], t] += 1
            if effect[atom, data.actions[t]] != NOTHING:
                false_ = int(effect[atom, data.actions[t]] == DELETE)
            if t + 1 == data.ends[t]:
                false_ = 0
    return Chain(pre, effect, listed, number, unmet, cover, forbidden)


@_compiled
def data_bits(chain: Any, data: Any) -> Any:
    """The bits of the actions, and the number of wrong labels."""
    bits, wrong = 0.0, 0
    for t in range(len(data.actions)):
        inapplicable = int(chain.cover[data.actions[t], t] > 0)
        bits += data.log2[_choices(inapplicable, chain.forbidden[t], len(chain.cover))]
        wrong += inapplicable != data.labels[t]
    return bits, wrong


@_compiled
def _choices(inapplicable: Any, forbidden: Any, total: Any) -> Any:
    return forbidden if inapplicable else total - forbidden


@_compiled
def flip_precondition(chain: Any, data: Any, atom: Any, action: Any, write: bool) -> Any:
    """Makes the atom a precondition of the action, or no longer one.

    Args:
        write: whether to make the change, or only to weigh it.

    Returns:
        The change in the bits of the actions, and in the number of wrong labels.
    """
    cover, total = chain.cover[action], len(chain.cover)
    add = 1 - 2 * np.int64(chain.pre[atom, action])
    alone = 0 if add == 1 else 1  # the cover at which this atom decides
    bits, wrong = 0.0, 0
    for t in range(len(data.actions)):
        if chain.unmet[atom, t]:
            if cover[t] == alone:
                own, n = data.actions[t], chain.forbidden[t]
                before = int(chain.cover[own, t] > 0)
                after = before + add if own == action else before
                bits += data.log2[_choices(after, n + add, total)] - data.log2[_choices(before, n, total)]
                wrong += (after != before) * (1 - 2 * int(after == data.labels[t]))
                if write:
                    chain.forbidden[t] += add
            if write:
                cover[t] += add
    if write:
        _list(chain, atom, action, add)
    return bits, wrong


@_compiled
def _list(chain: Any, atom: Any, action: Any, add: Any) -> None:
    chain.pre[atom, action] = add == 1
    listed, number = chain.listed[atom], chain.number
    if add == 1:
        listed[number[atom]] = action
        number[atom] += 1
        return
    at = 0
    while listed[at] != action:
        at += 1
    number[atom] -= 1
    listed[at] = listed[number[atom]]


@_compiled
def set_effect(chain: Any, data: Any, atom: Any, action: Any, to: Any, write: bool) -> Any:
    """Gives the action another effect on the atom; arguments and result as in `flip_precondition`."""
    unmet, effect, total = chain.unmet[atom], chain.effect[atom], len(chain.cover)
    bits, wrong = 0.0, 0
    value: Any = 0  # whether the atom is false in the last stretch
    reach = -1  # the last position of that stretch
    for place in range(data.first[action], data.first[action + 1]):
        begin = data.places[place]
        if to != NOTHING:
            value = int(to == DELETE)
        elif begin > reach:
            value = np.int64(unmet[begin])
        add = 2 * value - 1
        reach = data.ends[begin] - 1
        for t in range(begin + 1, data.ends[begin]):
            own = data.actions[t]
            if unmet[t] != value:
                n, more = chain.forbidden[t], 0
                before = int(chain.cover[own, t] > 0)
                after = before
                for k in range(chain.number[atom]):
                    other = chain.listed[atom, k]
                    if chain.cover[other, t] == 1 - value:
                        more += add
                        if other == own:
                            after = value
                    if write:
                        chain.cover[other, t] += add
                if more:
                    bits += data.log2[_choices(after, n + more, total)] - data.log2[_choices(before, n, total)]
                    wrong += (after != before) * (1 - 2 * int(after == data.labels[t]))
                if write:
                    chain.forbidden[t] = n + more
                    unmet[t] = value
            if own == action or effect[own] != NOTHING:
                reach = t
                break
    if write:
        effect[action] = to
    return bits, wrong


@_compiled
def change(chain: Any, data: Any, prices: Any, atom: Any, action: Any, to: Any, write: bool) -> Any:
    """Changes one cell: gives it another effect, or flips its precondition (`FLIP`).

    Returns:
        The change in the price of the cell, in the bits of the actions, and in the number of wrong labels.
    """
    pre, effect = np.int64(chain.pre[atom, action]), np.int64(chain.effect[atom, action])
    if to == FLIP:
        price = prices[1 - pre, effect] - prices[pre, effect]
        bits, wrong = flip_precondition(chain, data, atom, action, write)
    else:
        price = prices[pre, to] - prices[pre, effect]
        bits, wrong = set_effect(chain, data, atom, action, to, write)
    return price, bits, wrong


@_compiled
def propose(chain: Any, atom: Any, dice: Any) -> Any:
    """A random move of an atom, as likely as its undoing: an action and its change, and a second one (or -1)."""
    total = len(chain.cover)
    kind, one = below(dice, 8), below(dice, total)
    own = np.int64(chain.effect[atom, one])
    other = (own + 1 + below(dice, 2)) % 3
    if kind < 2:
        return one, FLIP, -1, FLIP
    if kind < 6:
        return one, other, -1, FLIP
    if kind == 6 or total == 1:
        return one, FLIP, one, other
    two = (one + 1 + below(dice, total - 1)) % total  # exchange effects, or preconditions
    if below(dice, 2):
        return one, np.int64(chain.effect[atom, two]), two, own
    if chain.pre[atom, one] == chain.pre[atom, two]:
        return one, own, -1, FLIP  # nothing to exchange
    return one, FLIP, two, FLIP


@_compiled
def anneal(
    pre: Any,
    effect: Any,
    data: Any,
    prices: Any,
    schedule: Any,
    span: Any,
    dice: Any,
    best: Any,
    best_cells: Any,
) -> None:
    """Some sweeps of a chain. A sweep draws as many atoms as there are, and proposes three moves an action for each.

    Args:
        pre, effect: the cells, changed in place.
        data: the traces.
        prices: the bits of a cell by its precondition and its effect, [2, 3].
        schedule: the temperature and the bits of a wrong label by sweep, [sweeps, 2].
        span: the first sweep, the one to stop before, and the first one whose cells may be kept.
        dice: the stream of random numbers, [1].
        best, best_cells: the shortest code so far, [1], and its cells, pre and effect, [2, L, A]; changed in place.
    """
    atoms, total = pre.shape
    chain = chain_of(pre, effect, data)
    bits, wrong = data_bits(chain, data)
    paid = 0.0
    for atom in range(atoms):
        for action in range(total):
            paid += prices[pre[atom, action], effect[atom, action]]
    for sweep in range(span[0], span[1]):
        temperature, wrong_label = schedule[sweep]
        for _ in range(atoms):
            atom = below(dice, atoms)
            for _ in range(_PROPOSALS * total):
                one, to, two, then = propose(chain, atom, dice)
                undo = FLIP if to == FLIP else np.int64(chain.effect[atom, one])
                if two < 0 and to != FLIP and to == undo:
                    continue
                price, more, worse = change(chain, data, prices, atom, one, to, two >= 0)
                if two >= 0:
                    second = change(chain, data, prices, atom, two, then, False)
                    price, more, worse = price + second[0], more + second[1], worse + second[2]
                rise = price + more + wrong_label * worse
                if rise <= 0 or math.log(uniform(dice)) * temperature < -rise:
                    if two >= 0:
                        change(chain, data, prices, atom, two, then, True)
                    else:
                        change(chain, data, prices, atom, one, to, True)
                    paid, bits, wrong = paid + price, bits + more, wrong + worse
                elif two >= 0:
                    change(chain, data, prices, atom, one, undo, True)
        if sweep >= span[2] and paid + bits + wrong_label * wrong < best[0] - 1e-9:
            best[0] = paid + bits + wrong_label * wrong
            best_cells[0], best_cells[1] = pre, effect
