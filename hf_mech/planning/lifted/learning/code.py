"""The two-part code of a log: which actions the rules leave at each step, and the bits to name the one that was taken.

    E = sum over steps of log2(sum of w over S(t) / w[a_t]) + exceptions * price + sum over rules of their description

S(t) are the ground actions seen in the log whose objects all occur in the trace, and that no rule forbids at t. Each
schema has a weight w: how often its actions are taken when they are possible; the weights are fitted with the rules. At
a failed step S(t) are the actions that some rule forbids. An exception is a step whose action is not in S(t): it is
told among all actions, and costs -log2(epsilon) more; every other step costs -log2(1 - epsilon) more. At failed steps
another chance, `unexplained`, stands for epsilon. In logs of plans the choice of an allowed action is worth less than
in walks: its bits count `walks` times.

A *habit* is a rule that a log breaks too often for one: it forbids nothing, but there the actions have a share of their
weight only. It explains what would otherwise speak for a false rule.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.events import Kind, Steps, Touches, bits_of, key_of
from hf_mech.planning.lifted.learning.rules import Rule


class Universe(NamedTuple):
    """Steps and, for each, the ground actions that its trace could have taken: a *cell* for each of both.

    Attributes:
        base: the first cell of each step, [N].
        size: the number of its cells, [N].
        step: of each cell, [cells].
        schema: of each cell's action, [cells].
        taken: the cell of the action that was taken, [N].
        columns: for each kind, its groups' ground actions: three arrays, the places of each group and pattern in the
            second, [groups * patterns + 1], and the cells' numbers within a step.
    """

    base: NDArray[np.int64]
    size: NDArray[np.int64]
    step: NDArray[np.int32]
    schema: NDArray[np.int32]
    taken: NDArray[np.int64]
    columns: list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def universe_of(steps: Steps, kinds: Sequence[Kind], touches: Sequence[Touches]) -> Universe:
    """The cells of a log."""
    table = np.column_stack([steps.action, steps.arguments])
    ground, which = np.unique(table, axis=0, return_inverse=True)
    which = which.reshape(-1)
    objects = [frozenset(row[row >= 0].tolist()) for row in ground[:, 1:]]
    local: dict[frozenset[int], NDArray[np.int64]] = {}
    users: dict[int, list[int]] = defaultdict(list)
    without: list[int] = []
    for number, own in enumerate(objects):
        (users[min(own)] if own else without).append(number)
    of_trace: list[NDArray[np.int64]] = []
    for begin, end in zip(steps.starts, steps.starts[1:], strict=False):
        own = frozenset(np.unique(steps.arguments[begin:end]).tolist()) - {-1}
        if own not in local:
            near = [number for each in sorted(own) for number in users[each] if objects[number] <= own]
            local[own] = np.array(sorted(without + near), np.int64)
        of_trace.append(local[own])
    size = np.repeat([len(own) for own in of_trace], np.diff(steps.starts)).astype(np.int64)
    base = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)
    schema = [np.tile(ground[own, 0], end - begin) for own, begin, end in _spans(of_trace, steps)]
    taken = np.concatenate([np.searchsorted(own, which[begin:end]) for own, begin, end in _spans(of_trace, steps)])
    columns = [
        _columns(kind, own, of_trace, ground, len(steps.objects)) for kind, own in zip(kinds, touches, strict=True)
    ]
    return Universe(
        base,
        size,
        np.repeat(np.arange(len(size)), size).astype(np.int32),
        np.concatenate(schema).astype(np.int32),
        base + taken,
        columns,
    )


def _spans(of_trace: list[NDArray[np.int64]], steps: Steps) -> Iterable[tuple[NDArray[np.int64], int, int]]:
    return zip(of_trace, steps.starts.tolist(), steps.starts[1:].tolist(), strict=False)


def _columns(
    kind: Kind, touches: Touches, of_trace: list[NDArray[np.int64]], ground: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ground actions, by their number within a step, that each pattern has for the tuple of each group."""
    patterns = len(kind.patterns)
    found: dict[int, dict[tuple[int, int], list[int]]] = {}
    by_schema: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for number, pattern in enumerate(kind.patterns):
        by_schema[pattern.action].append((number, pattern.places))
    starts = np.zeros(len(touches.keys) * patterns + 1, np.int64)
    flat: list[int] = []
    for group, (key, trace) in enumerate(zip(touches.keys.tolist(), touches.trace.tolist(), strict=True)):
        own = of_trace[trace]
        if id(own) not in found:
            table: dict[tuple[int, int], list[int]] = defaultdict(list)
            for column, row in enumerate(ground[own].tolist()):
                for number, places in by_schema[row[0]]:
                    table[key_of((row[1 + place] for place in places), count), number].append(column)
            found[id(own)] = table
        for number in range(patterns):
            flat += found[id(own)].get((key, number), ())
            starts[group * patterns + number + 1] = len(flat)
    return starts, np.array(flat, np.int64)


def forbidden_cells(rule: Rule, patterns: int, touches: Touches, steps: Steps, universe: Universe) -> NDArray[np.int64]:
    """The cells that a rule forbids."""
    starts, columns = universe.columns[rule.kind]
    first = steps.starts[touches.trace]
    last = steps.starts[touches.trace + 1]
    arguments = (
        touches.starts,
        touches.time,
        touches.done,
        first,
        last,
        universe.base,
        starts,
        columns,
        patterns,
        np.uint64(rule.adds),
        np.uint64(1) << np.uint64(rule.delete),
        rule.need,
    )
    cells = np.empty(_forbid(*arguments, np.empty(0, np.int64)), np.int64)
    _forbid(*arguments, cells)
    return cells


@numba.njit(cache=True, nogil=True)
def _forbid(
    starts: Any,
    times: Any,
    done: Any,
    first: Any,
    last: Any,
    base: Any,
    places: Any,
    columns: Any,
    patterns: Any,
    adds: Any,
    delete: Any,
    need: Any,
    out: Any,
) -> Any:
    """Counts the cells; writes them if there is room."""
    many, write = 0, len(out) > 0
    for group in range(len(starts) - 1):
        begin, end = places[group * patterns + need], places[group * patterns + need + 1]
        if begin == end:
            continue
        since = np.int64(-1)
        for event in range(starts[group], starts[group + 1] + 1):
            close = event == starts[group + 1]
            until = last[group] - 1 if close else first[group] + times[event]
            if since >= 0 and (close or (done[event] & adds)):
                if write:
                    for step in range(since, until + 1):
                        for column in range(begin, end):
                            out[many] = base[step] + columns[column]
                            many += 1
                else:
                    many += (until + 1 - since) * (end - begin)
                since = np.int64(-1)
            if not close and since < 0 and (done[event] & delete) and not (done[event] & adds):
                since = first[group] + times[event] + 1
    return many


class Code:
    """The bits of the steps under some rules.

    Args:
        steps: the log.
        universe: its cells.
        epsilon: the chance of an exception.
        walks: what the choice of an allowed action is worth: 1 if it is drawn among the allowed ones, as in a walk,
            less if the log is of plans, which leave out much that is possible. Failures and exceptions keep their
            worth.
        uniform: whether failed actions are drawn evenly from the forbidden ones; otherwise they have the weights of
            their schemas and the shares of habits, as actions that were done.

    Attributes:
        bits: of the steps, their exceptions included.
        right: the steps that are no exceptions, [N].
        weights: of each schema.
    """

    def __init__(
        self, steps: Steps, universe: Universe, epsilon: float, walks: float = 1.0, uniform: bool = False
    ) -> None:
        self.universe, self.failed, self.uniform = universe, steps.failed, uniform
        self.epsilon, self.unexplained, self.walks = max(epsilon, 1e-6), 0.5, walks
        if uniform:
            self.unexplained = 0.01  # a failure then has a reason among the rules
        self.schemas = len(steps.names)
        self.count = np.zeros(len(universe.step), np.int16)
        self.share = np.ones(len(universe.step), np.float32)
        self.weights = np.full(self.schemas, 1 / self.schemas)
        self.fit(30)

    def fit(self, rounds: int = 8) -> None:
        """The weights that make the code shortest, nearly (a minorise-maximise step of Hunter 2004, several times)."""
        own = self.universe
        steps = len(own.base)
        cell = own.step.astype(np.int64) * self.schemas + own.schema
        every = np.bincount(cell, self.share, steps * self.schemas).reshape(steps, self.schemas)
        free = np.bincount(cell, self.share * (self.count == 0), steps * self.schemas).reshape(steps, self.schemas)
        self.right = (self.count[own.taken] > 0) == self.failed
        told = self.right & ~self.failed
        taken = np.bincount(own.schema[own.taken[told]], minlength=self.schemas) + 0.5
        for _ in range(rounds):
            mass = np.maximum(free[told] @ self.weights, 1e-12)
            chances = (free[told] / mass[:, None]).sum(0)  # none: the log says nothing of the weight
            self.weights = np.where(chances > 0, taken / np.maximum(chances, 1e-9), self.weights)
            self.weights /= self.weights.sum()
        self.cell_weight = self.share * self.weights[own.schema].astype(np.float32)
        self.all, self.free = every @ self.weights, free @ self.weights
        if self.uniform:
            self.cell_weight[self.failed[own.step]] = 1
            open_ = np.bincount(own.step, self.count == 0, steps)
            self.all = np.where(self.failed, own.size, self.all)
            self.free = np.where(self.failed, open_, self.free)
        self.bits = self._total(self.free, self.right)

    def _total(self, free: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
        return float(self._bits(free, right).sum())

    def _bits(self, free: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
        choices = np.where(self.failed, self.all - free, free)
        choices = np.where(right, np.maximum(choices, 1e-12), self.all)
        price = np.where(
            self.failed,
            np.where(right, -math.log2(1 - self.unexplained), -math.log2(self.unexplained)),
            np.where(right, -math.log2(1 - self.epsilon), -math.log2(self.epsilon)),
        )
        own = self.weights[self.universe.schema[self.universe.taken]] * self.share[self.universe.taken]
        own = np.where(self.failed & self.uniform, 1.0, own)
        worth = np.where(self.failed | ~right, 1.0, self.walks)
        found: NDArray[np.float64] = np.log2(choices / own) * worth + price
        return found

    def gain(self, cells: NDArray[np.int64]) -> tuple[float, int]:
        """The bits that a rule with these cells would save, and the exceptions that it would add."""
        new = cells[self.count[cells] == 0]
        mass = np.bincount(self.universe.step[new], self.cell_weight[new], len(self.free))
        hit = np.zeros(len(self.right), bool)
        taken = new[self.universe.taken[self.universe.step[new]] == new]
        hit[self.universe.step[taken]] = True
        right = np.where(hit, self.failed, self.right)
        free = np.maximum(self.free - mass, 1e-12)
        return self.bits - self._total(free, right), int((hit & ~self.failed).sum())

    def habit(self, cells: NDArray[np.int64]) -> tuple[float, float]:
        """The bits that the same rule would save as a habit, and the share of their weight that its actions keep."""
        new = cells[self.count[cells] == 0]
        mass = np.bincount(self.universe.step[new], self.cell_weight[new], len(self.free))
        told = self.right & ~self.failed
        taken = new[(self.universe.taken[self.universe.step[new]] == new)]
        broken = int(told[self.universe.step[taken]].sum())
        fraction = np.minimum(mass / np.maximum(self.free, 1e-12), 1 - 1e-9)[told]
        share = (broken + 0.5) / (float(fraction.sum()) + 0.5)
        if share >= 1:
            return 0.0, 1.0
        saved = float(-np.log2(1 - (1 - share) * fraction).sum() + broken * math.log2(share))
        return self.walks * saved, share

    def add(self, cells: NDArray[np.int64], sign: int = 1) -> None:
        """Takes a rule into the domain; -1: out of it. Fits the weights."""
        self.count[cells] += np.int16(sign)
        self.fit()

    def add_habit(self, cells: NDArray[np.int64], share: float) -> None:
        """Takes a habit into the code. Fits the weights."""
        self.share[cells] *= np.float32(share)
        self.fit()


def code_length_reference(
    steps: Steps,
    kinds: Sequence[Kind],
    rules: Iterable[Rule],
    weights: Sequence[float],
    epsilon: float,
    unexplained: float = 0.5,
    habits: Mapping[Rule, float] | None = None,
    walks: float = 1.0,
    uniform: bool = False,
) -> float:
    """E of the steps, without the description of the rules: the formula above, step by step.

    Args:
        steps, kinds: the log.
        rules: of the domain.
        weights: w, of each schema.
        epsilon, unexplained: the chances of an exception at a step that was done, and at one that failed.
        habits: rules, and the share of their weight that actions keep where they are in force.
        walks: what the choice of an allowed action is worth.
        uniform: whether all forbidden actions are as likely at a failed step.
    """
    habits, rules = habits or {}, set(rules)
    rows = list(zip(steps.action.tolist(), map(tuple, steps.arguments.tolist()), strict=True))  # (schema, objects)

    def touched(rule: Rule, patterns: Iterable[int], row: tuple[int, tuple[int, ...]]) -> set[tuple[int, ...]]:
        """The tuples that some patterns of an action touch."""
        own = [kinds[rule.kind].patterns[pattern] for pattern in patterns]
        return {tuple(row[1][place] for place in pattern.places) for pattern in own if pattern.action == row[0]}

    total = 0.0
    for begin, end in itertools.pairwise(steps.starts.tolist()):
        objects = {each for _, own in rows[begin:end] for each in own}
        possible = {row for row in rows if set(row[1]) - {-1} <= objects}
        force: dict[Rule, set[tuple[int, ...]]] = {rule: set() for rule in rules | set(habits)}
        for row, failed in zip(rows[begin:end], steps.failed[begin:end].tolist(), strict=True):
            behind = {
                each: [rule for rule in force if touched(rule, [rule.need], each) & force[rule]] for each in possible
            }
            forbidden = {each for each in possible if rules & set(behind[each])}
            share = {each: math.prod(habits.get(rule, 1.0) for rule in behind[each]) for each in possible}
            weight = {each: 1.0 if failed and uniform else weights[each[0]] * share[each] for each in possible}
            allowed = forbidden if failed else possible - forbidden  # S(t)
            chance = unexplained if failed else epsilon
            right = row in allowed
            choice = math.log2(sum(weight[each] for each in (allowed if right else possible)) / weight[row])
            total += choice * (walks if right and not failed else 1.0)
            total -= math.log2(1 - chance if right else chance)
            for rule in () if failed else force:
                force[rule] |= touched(rule, [rule.delete], row)
                force[rule] -= touched(rule, bits_of(rule.adds), row)
    return total


def broken_steps(
    touches: Touches, steps: Steps, adds: int, deletes: int, need: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The steps that did `need` while the atom was known to be true, and those while it was known to be false."""
    true, false = np.zeros(len(steps.action), bool), np.zeros(len(steps.action), bool)
    first = steps.starts[touches.trace]
    _mark(touches.starts, touches.time, touches.done, first, np.uint64(adds), np.uint64(deletes), need, true, false)
    return np.flatnonzero(true), np.flatnonzero(false)


@numba.njit(cache=True, nogil=True)
def _mark(
    starts: Any, times: Any, done: Any, first: Any, adds: Any, deletes: Any, need: Any, true: Any, false: Any
) -> None:
    bit = np.uint64(1) << np.uint64(need)
    for group in range(len(starts) - 1):
        value = 0
        for event in range(starts[group], starts[group + 1]):
            if done[event] & bit:
                if value > 0:
                    true[first[group] + times[event]] = True
                elif value < 0:
                    false[first[group] + times[event]] = True
            if done[event] & adds:
                value = 1
            elif done[event] & deletes:
                value = -1
