"""Labelled traces as the arrays that the annealing reads."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.two_part_code.code import TwoPartCodeError
from hf_mech.planning.two_part_code.kernel import Positions


def positions_of(
    traces: Iterable[Sequence[int | str]], labels: Iterable[Sequence[int]], actions: Sequence[str]
) -> Positions:
    """The traces as arrays. Raises TwoPartCodeError for what [`learn_domain`] refuses."""
    traces, labels = list(traces), list(labels)
    if len(traces) != len(labels):
        raise TwoPartCodeError(f"Each trace needs its labels: got {len(traces)} traces, labels of {len(labels)}.")
    index = {name: number for number, name in enumerate(actions)} | {number: number for number in range(len(actions))}
    if len(index) != 2 * len(actions) or not actions:
        raise TwoPartCodeError(f"actions must be one or more different names, got {list(actions)}.")
    flat: list[int] = []
    told: list[int] = []
    ends: list[int] = []
    for number, (trace, own) in enumerate(zip(traces, labels, strict=True)):
        if not _is_sequence(trace) or not _is_sequence(own):
            raise TwoPartCodeError(f"Trace {number} and its labels must be sequences, got {trace!r} and {own!r}.")
        if unknown := [action for action in trace if not _is_one_of(action, index)]:
            raise TwoPartCodeError(f"Unknown action {unknown[0]!r} in trace {number}; known: {', '.join(actions)}.")
        if len(own) != len(trace) or not all(_is_one_of(label, (0, 1)) for label in own):
            raise TwoPartCodeError(
                f"Trace {number} needs a label for each of its {len(trace)} actions, 0 (applicable) or 1; got "
                f"{list(own)}."
            )
        flat += [index[action] for action in trace]
        told.extend(own)
        ends += [len(flat)] * len(trace)
    if not flat:
        raise TwoPartCodeError("There are no traces to learn from; give at least one that is not empty.")
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
    places = np.argsort(positions, kind="stable")
    return Positions(
        actions=positions,
        labels=labels,
        starts=np.unique(ends, return_index=True)[1],
        ends=ends,
        places=places,
        first=np.searchsorted(positions[places], np.arange(actions + 1)),
        log2=np.log2(np.maximum(np.arange(actions + 1), 1)),
    )
