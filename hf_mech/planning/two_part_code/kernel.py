"""The annealing of `learn_domain`, compiled: Metropolis moves over the cells of a domain, the cost of each incremental.

A *cell* is an atom and an action: whether the atom is a precondition, and which effect the action has on it. A move
changes one cell or two. Its cost follows from the positions where something changes: for a precondition, those before
which the atom is false; for an effect, those between an occurrence of the action and the next effect on the same atom.
An action with label 1 fails, and has no effect.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F")
NOTHING, ADD, DELETE, FLIP = 0, 1, 2, -1
TRUE, DELETED, FALSE_AT_FIRST = 0, 1, 2
_PROPOSALS = 3


class Positions(NamedTuple):
    """All traces, one behind another: N positions, A actions.

    Attributes:
        actions: the action at every position, [N].
        labels: 1 where it is inapplicable, [N]. Such an action fails: it changes nothing.
        starts: the first position of each trace, [traces].
        ends: the end of the position's trace, [N].
        places, first: where each action does not fail, in order; the places of action a begin at `first[a]`, [A + 1].
        log2: the logarithms of 0 (never used) to A, [A + 1].
    """

    actions: NDArray[np.int64]
    labels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: NDArray[np.int64]
    first: NDArray[np.int64]
    log2: NDArray[np.float64]


class Guess(NamedTuple):
    """The cells of L atoms, and the initial states.

    Attributes:
        pre: 1 where the atom is a precondition, [L, A].
        effect: `NOTHING`, `ADD` or `DELETE`, [L, A].
        initial: 1 where the atom is false in an initial state, [K, L].
        state: the initial state of each trace, [traces].
    """

    pre: NDArray[np.uint8]
    effect: NDArray[np.uint8]
    initial: NDArray[np.uint8]
    state: NDArray[np.int64]

    def copy(self) -> Guess:
        """The same numbers in arrays of their own."""
        return Guess(self.pre.copy(), self.effect.copy(), self.initial.copy(), self.state.copy())


class Chain(NamedTuple):
    """A guess, and what follows from it.

    Attributes:
        pre, effect, initial, state: the guess.
        needs: the actions that have the atom as a precondition, as bits, [L, words].
        unmet: the atom before the position, [L, N]: `TRUE`, `DELETED`, or `FALSE_AT_FIRST` and not yet affected. Only
            the first of these says nothing to a walk; only the second speaks to the label 1 (Definition 1).
        cover: how many atoms forbid the action there: preconditions that are false, [N, A].
        free, single: the actions that no atom forbids there, and those that one atom alone does, as bits, [N, words].
        free_at, single_at: the same by action, positions as bits, [A, words].
        speaks: the positions where the atom forbids its actions, as bits, [L, words].
        forbidden: how many actions at least one atom forbids there, [N].
    """

    pre: NDArray[np.uint8]
    effect: NDArray[np.uint8]
    initial: NDArray[np.uint8]
    state: NDArray[np.int64]
    needs: NDArray[np.uint64]
    unmet: NDArray[np.uint8]
    cover: NDArray[np.int16]
    free: NDArray[np.uint64]
    single: NDArray[np.uint64]
    free_at: NDArray[np.uint64]
    single_at: NDArray[np.uint64]
    speaks: NDArray[np.uint64]
    forbidden: NDArray[np.int64]


def _compiled(function: F) -> F:
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled


def _inlined(function: F) -> F:
    """For small functions of numbers. Those of arrays gain nothing: a loop and its arrays belong in one function."""
    compiled: F = numba.njit(inline="always")(function)
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


@_inlined
def _bit(at: Any) -> Any:
    return np.uint64(1) << np.uint64(at & 63)


@_inlined
def _toggle(bits: Any, row: Any, at: Any) -> Any:
    """Turns one bit of a row of words."""
    bits[row, at >> 6] ^= _bit(at)


@_inlined
def _ones(x: Any) -> Any:
    """The number of bits of a word that are set; compilers know this form."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_inlined
def _lowest(x: Any) -> Any:
    """The place of a word's lowest bit that is set."""
    return _ones((x & (~x + np.uint64(1))) - np.uint64(1))


@_inlined
def _forbids(value: Any, label: Any) -> Any:
    """Whether an atom forbids its actions. A walk knows its state; a negative trace's last action contradicts it."""
    return value == DELETED or (value == FALSE_AT_FIRST and label == 0)


@_inlined
def _choices(inapplicable: Any, forbidden: Any, total: Any) -> Any:
    return forbidden if inapplicable else total - forbidden


@_compiled
def _cover(chain: Any, t: Any, action: Any, add: Any) -> None:
    """One atom more (1) or less (-1) forbids the action at a position."""
    before = chain.cover[t, action]
    now = before + add
    chain.cover[t, action] = now
    fewer = min(before, now)
    if fewer <= 1:
        _toggle(chain.single, t, action)
        _toggle(chain.single_at, action, t)
    if fewer == 0:
        _toggle(chain.free, t, action)
        _toggle(chain.free_at, action, t)
        chain.forbidden[t] += add


@_compiled
def chain_of(guess: Any, data: Any) -> Any:
    """The chain that begins with a guess, whose arrays become the chain's."""
    pre, effect, initial, state = guess
    atoms, total = pre.shape
    positions, words = len(data.actions), (total + 63) // 64
    spans = (positions + 63) // 64
    chain = Chain(
        pre,
        effect,
        initial,
        state,
        np.zeros((atoms, words), np.uint64),
        np.zeros((atoms, positions), np.uint8),
        np.zeros((positions, total), np.int16),
        np.zeros((positions, words), np.uint64),
        np.zeros((positions, words), np.uint64),
        np.zeros((total, spans), np.uint64),
        np.zeros((total, spans), np.uint64),
        np.zeros((atoms, spans), np.uint64),
        np.zeros(positions, np.int64),
    )
    for action in range(total):
        for t in range(positions):
            chain.free_at[action, t >> 6] |= _bit(t)
            chain.free[t, action >> 6] |= _bit(action)
        for atom in range(atoms):
            if pre[atom, action]:
                chain.needs[atom, action >> 6] |= _bit(action)
    for atom in range(atoms):
        for trace in range(len(data.starts)):
            value: Any = FALSE_AT_FIRST if initial[state[trace], atom] else TRUE
            for t in range(data.starts[trace], data.ends[data.starts[trace]]):
                chain.unmet[atom, t] = value
                if _forbids(value, data.labels[t]):
                    _toggle(chain.speaks, atom, t)
                    for action in range(total):
                        if pre[atom, action]:
                            _cover(chain, t, action, 1)
                if effect[atom, data.actions[t]] != NOTHING and data.labels[t] == 0:
                    value = DELETED if effect[atom, data.actions[t]] == DELETE else TRUE
    return chain


@_compiled
def data_bits(chain: Any, data: Any) -> Any:
    """The bits of the actions, and the number of wrong labels."""
    bits, wrong = 0.0, 0
    total = chain.cover.shape[1]
    for t in range(len(data.actions)):
        inapplicable = int(chain.cover[t, data.actions[t]] > 0)
        bits += data.log2[_choices(inapplicable, chain.forbidden[t], total)]
        wrong += inapplicable != data.labels[t]
    return bits, wrong


@_compiled
def flip_precondition(chain: Any, data: Any, atom: Any, action: Any, write: bool) -> Any:
    """Makes the atom a precondition of the action, or no longer one.

    Args:
        write: whether to make the change, or only to weigh it.

    Returns:
        The change in the bits of the actions, and in the number of wrong labels.
    """
    speaks, cover, forbidden = chain.speaks[atom], chain.cover, chain.forbidden
    actions, labels, log2 = data.actions, data.labels, data.log2
    total = cover.shape[1]
    add = 1 - 2 * np.int64(chain.pre[atom, action])
    decides = chain.free_at[action] if add == 1 else chain.single_at[action]  # where no other atom forbids it
    bits, wrong = 0.0, 0
    for span in range(len(speaks)):
        left = speaks[span] & decides[span]
        while left:
            t = span * 64 + _lowest(left)
            left &= left - np.uint64(1)
            n = forbidden[t]
            before = int(cover[t, actions[t]] > 0)
            now = before + add if actions[t] == action else before
            bits += log2[_choices(now, n + add, total)] - log2[_choices(before, n, total)]
            wrong += (now != before) * (1 - 2 * int(now == labels[t]))
    if write:
        for span in range(len(speaks)):
            left = speaks[span]
            while left:
                _cover(chain, span * 64 + _lowest(left), action, add)
                left &= left - np.uint64(1)
    if write:
        chain.pre[atom, action] = add == 1
        chain.needs[atom, action >> 6] ^= _bit(action)
    return bits, wrong


@_compiled
def _turn(
    chain: Any, data: Any, atom: Any, places: Any, after: Any, value: Any, inherit: bool, ender: Any, write: bool
) -> Any:
    """Gives the atom another value on stretches of positions, each up to the next effect on the atom.

    Args:
        places, after: a stretch begins `after` (0 or 1) positions behind each place, in the same trace.
        value: the new one.
        inherit: whether, instead, the value is that before the place, which may lie in the stretch before.
        ender: an action that ends a stretch, too, or -1.
        write: whether to make the change, or only to weigh it.

    Returns:
        The change in the bits of the actions, and in the number of wrong labels.
    """
    unmet, effect, needs = chain.unmet[atom], chain.effect[atom], chain.needs[atom]
    pre, cover, free, single, forbidden = chain.pre[atom], chain.cover, chain.free, chain.single, chain.forbidden
    actions, labels, ends, log2 = data.actions, data.labels, data.ends, data.log2
    total, words = cover.shape[1], free.shape[1]
    bits, wrong = 0.0, 0
    reach = -1  # the last position of the stretch before
    for place in places:
        if inherit and place > reach:
            value = unmet[place]
        reach = ends[place] - 1
        for t in range(place + after, ends[place]):
            if unmet[t] != value:
                forbids = _forbids(value, labels[t])
                if forbids != _forbids(unmet[t], labels[t]):
                    own, n, more = actions[t], forbidden[t], 0
                    add = 1 if forbids else -1
                    for k in range(words):
                        more += add * _ones(needs[k] & (free[t, k] if forbids else single[t, k]))
                    if more != 0:
                        before = int(cover[t, own] > 0)
                        now = before + add if pre[own] and cover[t, own] == (0 if forbids else 1) else before
                        bits += log2[_choices(now, n + more, total)] - log2[_choices(before, n, total)]
                        wrong += (now != before) * (1 - 2 * int(now == labels[t]))
                    if write:
                        _toggle(chain.speaks, atom, t)
                        for k in range(words):
                            left = needs[k]
                            while left:
                                _cover(chain, t, k * 64 + _lowest(left), add)
                                left &= left - np.uint64(1)
                if write:
                    unmet[t] = value
            if (actions[t] == ender or effect[actions[t]] != NOTHING) and labels[t] == 0:
                reach = t
                break
    return bits, wrong


@_compiled
def set_effect(chain: Any, data: Any, atom: Any, action: Any, to: Any, write: bool) -> Any:
    """Gives the action another effect on the atom; arguments and result as in `flip_precondition`."""
    places = data.places[data.first[action] : data.first[action + 1]]
    value = np.uint8(DELETED if to == DELETE else TRUE)
    more = _turn(chain, data, atom, places, 1, value, to == NOTHING, action, write)
    if write:
        chain.effect[atom, action] = to
    return more


@_compiled
def flip_initial(chain: Any, data: Any, which: Any, atom: Any, write: bool) -> Any:
    """Makes the atom false in an initial state, or true again; arguments and result as in `flip_precondition`."""
    value = np.uint8(TRUE if chain.initial[which, atom] else FALSE_AT_FIRST)
    more = _turn(chain, data, atom, data.starts[chain.state == which], 0, value, False, -1, write)
    if write:
        chain.initial[which, atom] = value == FALSE_AT_FIRST
    return more


@_compiled
def move_traces(chain: Any, data: Any, moved: Any, to: Any) -> Any:
    """Gives traces of one initial state another one; the change in bits and in wrong labels.

    Args:
        moved: one or more traces.
        to: their new initial state.
    """
    bits, wrong = 0.0, 0
    now = chain.state[moved[0]]
    for atom in range(len(chain.pre)):
        if chain.initial[to, atom] != chain.initial[now, atom]:
            value = np.uint8(FALSE_AT_FIRST if chain.initial[to, atom] else TRUE)
            more = _turn(chain, data, atom, data.starts[moved], 0, value, False, -1, True)
            bits, wrong = bits + more[0], wrong + more[1]
    chain.state[moved] = to
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
    total = chain.cover.shape[1]
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
def _accepts(rise: Any, temperature: Any, dice: Any) -> Any:
    """Metropolis' rule."""
    return rise <= 0 or math.log(uniform(dice)) * temperature < -rise


@_compiled
def anneal(now: Any, data: Any, prices: Any, schedule: Any, span: Any, dice: Any, bits_kept: Any, kept: Any) -> None:
    """Some sweeps of a chain.

    A sweep draws as many atoms as there are; it proposes three moves an action for each, and its flip in every initial
    state. Then it proposes another initial state for all traces that begin with the same action, and for every trace.

    Args:
        now: the guess, changed in place.
        data: the traces.
        prices: the bits of a cell by its precondition and its effect, [2, 3].
        schedule: the temperature and the bits of a wrong label by sweep, [sweeps, 2].
        span: the first sweep, the one to stop before, and the first one whose guess may be kept.
        dice: the stream of random numbers, [1].
        bits_kept, kept: the shortest code so far, [1], and its guess; changed in place.
    """
    pre, effect, initial, state = now
    atoms, total = pre.shape
    chain = chain_of(now, data)
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
                pair = two >= 0  # flags are variables: for True and False numba would compile all that follows twice
                price, more, worse = change(chain, data, prices, atom, one, to, pair)
                if pair:
                    second = change(chain, data, prices, atom, two, then, not pair)
                    price, more, worse = price + second[0], more + second[1], worse + second[2]
                if _accepts(price + more + wrong_label * worse, temperature, dice):
                    if pair:
                        change(chain, data, prices, atom, two, then, pair)
                    else:
                        change(chain, data, prices, atom, one, to, not pair)
                    paid, bits, wrong = paid + price, bits + more, wrong + worse
                elif pair:
                    change(chain, data, prices, atom, one, undo, pair)
            for which in range(len(initial)):
                more, worse = flip_initial(chain, data, which, atom, which < 0)
                if _accepts(more + wrong_label * worse, temperature, dice):
                    flip_initial(chain, data, which, atom, which >= 0)
                    bits, wrong = bits + more, wrong + worse
        groups = total + len(data.starts) if len(initial) > 1 else 0
        for group in range(groups):  # those that begin with one action, then each by itself
            before = np.int64(below(dice, len(initial)))
            if group < total:
                moved = np.nonzero((data.actions[data.starts] == group) & (state == before))[0]
            else:
                moved = np.full(1, group - total)
                before = state[group - total]
            if len(moved):
                to = (before + 1 + below(dice, len(initial) - 1)) % len(initial)
                more, worse = move_traces(chain, data, moved, to)
                if _accepts(more + wrong_label * worse, temperature, dice):
                    bits, wrong = bits + more, wrong + worse
                else:
                    move_traces(chain, data, moved, before)
        if sweep >= span[2] and paid + bits + wrong_label * wrong < bits_kept[0] - 1e-9:
            bits_kept[0] = paid + bits + wrong_label * wrong
            for i in range(pre.size):  # assignments of whole arrays take numba three seconds to compile
                kept.pre.flat[i], kept.effect.flat[i] = pre.flat[i], effect.flat[i]
            for i in range(initial.size):
                kept.initial.flat[i] = initial.flat[i]
            for trace in range(len(state)):
                kept.state[trace] = state[trace]
