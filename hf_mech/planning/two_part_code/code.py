"""The two-part code of traces: bits of a domain, and bits of the traces given the domain."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.two_part_code.kernel import Positions

# ----------------------------------------------------------------------------------------------------------------------
# The two-part code: how many bits a domain takes, and the traces that are told with its help.
#
#     E = W w + sum over positions t of log2 |S(t)| + sum over cells of price(pre, effect)
#
# A *cell* is an atom and an action. S(t) is the set of actions among which a_t was drawn:
#
# - in a walk (label 0), those whose preconditions are true in the state before t. The traces begin in one of K states,
#   unknown, as is which of them a trace begins in: both are fitted, and cost nothing.
# - at an action that fails (label 1), those that contradict the actions before t (Eq. 6): known to be inapplicable
#   whatever the initial state.
#
# An action that fails changes nothing: the trace goes on from the state before it. Most often it is the last one of a
# negative trace; logs have such actions anywhere.
#
# w is the number of positions whose action is not in S(t), so that the domain calls its label wrong; there the choice
# is among the other actions, those that are not in S(t). Cells that no trace determines cost bits, so the shortest code
# leaves them empty.
#
# This is an **assumption** about the traces: each action of a walk is uniform among the applicable ones, an action that
# fails is uniform among the contradicting ones, and few initial states serve all traces. The default traces of
# `hf_mech/strips_traces` are drawn so, from two initial states a split. The domain itself is judged as in the paper: by
# Definition 1, which knows no initial state.


def check_whole(name: str, value: Any, least: int) -> None:
    """Raises PlanningError for what is no whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise PlanningError(f"{name} must be a whole number, {least} or more, got {value!r}.")


def _number(value: Any) -> bool:
    """Whether it is a finite number."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


@dataclass(frozen=True)
class TwoPartCode:
    """The prices of the code, and the annealing that looks for the shortest one.

    Args:
        precondition, add, delete: bits of a cell with only this.
        add_precondition, delete_precondition: bits of a cell that is a precondition, too. A deleted precondition is the
            common case of planning, and the cheapest of the two.
        label_noise: the share of traces whose last label is expected to be wrong. W, the price of a wrong label at any
            position, is log2((1 - noise) / noise) bits; with 0 it is 1,000, more than a wrong label saves but in very
            long traces.
        significance: the largest chance at which an invariant is believed, see `search.complete`.
        sweeps: for how long to anneal, with the first traces; each later stage takes a quarter of it.
        first_traces: how many those are; each later stage has three times as many.
        temperature: the first and the last one, in bits.
        first_wrong_label: the price of a wrong label at the beginning, in bits.
        initial_states: K, the number of states that the traces begin in.

    Raises:
        PlanningError: a number out of its range.
    """

    precondition: float = 10.0
    add: float = 10.0
    delete: float = 12.0
    add_precondition: float = 17.0
    delete_precondition: float = 11.0
    label_noise: float = 0.0
    significance: float = 1e-6
    sweeps: int = 400
    first_traces: int = 200
    temperature: tuple[float, float] = (8.0, 0.8)
    first_wrong_label: float = 20.0
    initial_states: int = 2

    def __post_init__(self) -> None:
        for count in ("sweeps", "initial_states", "first_traces"):
            check_whole(count, getattr(self, count), 1)
        for bits in ("precondition", "add", "delete", "add_precondition", "delete_precondition"):
            if not _number(getattr(self, bits)) or getattr(self, bits) < 0:
                raise PlanningError(f"{bits} is a number of bits, 0 or more, got {getattr(self, bits)!r}.")
        if not _number(self.label_noise) or not 0 <= self.label_noise < 0.5:
            raise PlanningError(
                f"label_noise must be 0 or more and less than 0.5, got {self.label_noise!r}; with half of the labels "
                "wrong they say nothing."
            )
        if not _number(self.significance) or not 0 < self.significance < 1:
            raise PlanningError(f"significance must be between 0 and 1, got {self.significance!r}.")
        if not _number(self.first_wrong_label) or self.first_wrong_label <= 0:
            raise PlanningError(f"first_wrong_label is a number of bits above 0, got {self.first_wrong_label!r}.")
        given: Any = self.temperature
        ends = given if isinstance(given, Sequence) else ()
        if len(ends) != 2 or not all(map(_number, ends)) or not 0 < ends[1] <= ends[0]:
            raise PlanningError(
                f"temperature is a first and a last one; it must fall, and stay above 0; got {self.temperature!r}."
            )

    @property
    def prices(self) -> list[list[float]]:
        """The bits of a cell, [not a precondition / a precondition][no effect / add / delete]."""
        return [[0.0, self.add, self.delete], [self.precondition, self.add_precondition, self.delete_precondition]]

    @property
    def wrong_label(self) -> float:
        """The bits of a wrong label at the end."""
        return 1000.0 if self.label_noise == 0 else math.log2((1 - self.label_noise) / self.label_noise)


def code_length_reference(
    domain: StripsDomain,
    traces: Sequence[Sequence[int]],
    labels: Sequence[Sequence[int]],
    initial: Sequence[int],
    code: TwoPartCode,
) -> float:
    """E, position by position as the formula has it.

    Args:
        domain: any domain.
        traces: actions by index.
        labels: 1 where the action is inapplicable, so that it changes nothing.
        initial: the false propositions of the state in which each trace begins, as masks.
        code: the prices.
    """
    bits = 0.0
    for trace, told, false_at_first in zip(traces, labels, initial, strict=True):
        false_, falsified = false_at_first, 0  # in the state, and by the trace alone
        for action, label in zip(trace, told, strict=True):
            forbids = falsified if label else false_
            forbidden = [bool(pre & forbids) for pre in domain.pre_masks]
            bits += math.log2(forbidden.count(forbidden[action]))
            bits += code.wrong_label * (forbidden[action] != bool(label))
            if not label:
                false_, falsified = domain.advance(false_, action), domain.advance(falsified, action)
    for known in domain.actions:
        for atom in domain.propositions:
            effect = 1 if atom in known.add else 2 if atom in known.delete else 0
            bits += code.prices[atom in known.pre][effect]
    return bits


# ----------------------------------------------------------------------------------------------------------------------
# Labelled traces as the arrays that the annealing reads.


def positions_of(
    traces: Iterable[Sequence[int | str]], labels: Iterable[Sequence[int]], actions: Sequence[str]
) -> Positions:
    """The traces as arrays. Raises PlanningError for what [`learn_domain`] refuses."""
    traces, labels = list(traces), list(labels)
    if len(traces) != len(labels):
        raise PlanningError(f"Each trace needs its labels: got {len(traces)} traces, labels of {len(labels)}.")
    index = {name: number for number, name in enumerate(actions)} | {number: number for number in range(len(actions))}
    if len(index) != 2 * len(actions) or not actions:
        raise PlanningError(f"actions must be one or more different names, got {list(actions)}.")
    flat: list[int] = []
    told: list[int] = []
    ends: list[int] = []
    for number, (trace, own) in enumerate(zip(traces, labels, strict=True)):
        if not _is_sequence(trace) or not _is_sequence(own):
            raise PlanningError(f"Trace {number} and its labels must be sequences, got {trace!r} and {own!r}.")
        if unknown := [action for action in trace if not _is_one_of(action, index)]:
            raise PlanningError(f"Unknown action {unknown[0]!r} in trace {number}; known: {', '.join(actions)}.")
        if len(own) != len(trace) or not all(_is_one_of(label, (0, 1)) for label in own):
            raise PlanningError(
                f"Trace {number} needs a label for each of its {len(trace)} actions, 0 (applicable) or 1; got "
                f"{list(own)}."
            )
        flat += [index[action] for action in trace]
        told.extend(own)
        ends += [len(flat)] * len(trace)
    if not flat:
        raise PlanningError("There are no traces to learn from; give at least one that is not empty.")
    return _positions(np.array(flat), np.array(told, np.uint8), np.array(ends), len(actions))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (Sequence, np.ndarray))


def _is_one_of(value: Any, known: Collection[Any]) -> bool:
    return isinstance(value, Hashable) and value in known


def some_of(data: Positions, traces: NDArray[np.int64]) -> Positions:
    """Only these traces, in ascending order."""
    lengths = data.ends[data.starts] - data.starts
    kept = np.isin(np.repeat(np.arange(len(lengths)), lengths), traces)
    ends = np.repeat(np.cumsum(lengths[traces]), lengths[traces])
    return _positions(data.actions[kept], data.labels[kept], ends, len(data.first) - 1)


def _positions(
    positions: NDArray[np.int64], labels: NDArray[np.uint8], ends: NDArray[np.int64], actions: int
) -> Positions:
    happened = np.flatnonzero(labels == 0)
    places = happened[np.argsort(positions[happened], kind="stable")]
    return Positions(
        actions=positions,
        labels=labels,
        starts=np.unique(ends, return_index=True)[1],
        ends=ends,
        places=places,
        first=np.searchsorted(positions[places], np.arange(actions + 1)),
        log2=np.log2(np.maximum(np.arange(actions + 1), 1)),
    )
