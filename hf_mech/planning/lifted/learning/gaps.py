"""What happens to a tuple between an action and the next ones: the statistics from which rules are read.

For a tuple of objects and a pattern d that has touched it, the *gap* is the set of patterns that have touched it since,
and of those by which the same step did (an object stands twice in it): what a step adds and deletes is added.
For each d and each gap there are two counts: the time spent there, in steps, and how often each pattern came next. They
are all that the search for rules needs, of any number of traces; one pass over the events collects them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.events import Kind, Steps, Touches

NEVER = np.uint64((1 << 64) - 1)
"""The gap before the first d."""


class Gaps(NamedTuple):
    """The statistics of a kind with P patterns, a row for each pattern and gap.

    Attributes:
        pattern: d, [rows].
        since: the patterns since d as bits, or `NEVER`, [rows].
        time: the steps spent, by which patterns are possible for the tuple, [rows, possibilities].
        possible: those patterns as bits, [possibilities].
        done: how often each pattern came next, [rows, P].
        failed: how often each was tried and failed, [rows, P].
    """

    pattern: NDArray[np.int64]
    since: NDArray[np.uint64]
    time: NDArray[np.int64]
    possible: NDArray[np.uint64]
    done: NDArray[np.int64]
    failed: NDArray[np.int64]


def gaps_of(steps: Steps, kind: Kind, touches: Touches) -> Gaps:
    """One pass over the events of a kind."""
    patterns = len(kind.patterns)
    canonical = np.array([kind.canonical(pattern) for pattern in range(patterns)])
    possible, which = np.unique(touches.possible, return_inverse=True)
    lengths = np.diff(steps.starts)[touches.trace]
    pattern, since, time, done, failed = _collect(
        touches.starts, touches.time, touches.done, touches.failed, lengths, which, possible, canonical, patterns
    )
    return Gaps(pattern, since, time, possible, done, failed)


@numba.njit(cache=True, nogil=True)
def _row(pattern: Any, since: Any, table: Any, rows_pattern: Any, rows_since: Any, used: Any) -> Any:
    """The row of a pattern and a gap in an open-addressing table; a new one if there is none."""
    mixed = (since ^ (np.uint64(pattern) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    place = np.int64((mixed >> np.uint64(20)) & np.uint64(len(table) - 1))
    while True:
        row = table[place]
        if row < 0:
            row = used[0]
            used[0] += 1
            table[place] = row
            rows_pattern[row] = pattern
            rows_since[row] = since
            return row
        if rows_pattern[row] == pattern and rows_since[row] == since:
            return row
        place = (place + 1) & (len(table) - 1)


@numba.njit(cache=True, nogil=True)
def _collect(
    starts: Any,
    times: Any,
    done: Any,
    failed: Any,
    lengths: Any,
    which: Any,
    possible: Any,
    canonical: Any,
    patterns: Any,
) -> Any:
    never = np.uint64(0xFFFFFFFFFFFFFFFF)
    room = 1 << 10
    table = np.full(4 * room, -1, np.int64)
    rows_pattern, rows_since = np.zeros(room, np.int64), np.zeros(room, np.uint64)
    time = np.zeros((room, len(possible)), np.int64)
    counts, fails = np.zeros((room, patterns), np.int64), np.zeros((room, patterns), np.int64)
    used = np.zeros(1, np.int64)
    since = np.zeros(patterns, np.uint64)
    for group in range(len(starts) - 1):
        own = possible[which[group]]
        for d in range(patterns):
            since[d] = never
        last = np.int64(-1)
        for event in range(starts[group], starts[group + 1] + 1):
            end = event == starts[group + 1]
            now = lengths[group] - 1 if end else times[event]
            if used[0] + patterns >= room:  # twice the room, before it is needed
                room *= 2
                table = np.full(4 * room, -1, np.int64)
                older = rows_pattern, rows_since, time, counts, fails
                rows_pattern, rows_since = np.zeros(room, np.int64), np.zeros(room, np.uint64)
                time = np.zeros((room, len(possible)), np.int64)
                counts, fails = np.zeros((room, patterns), np.int64), np.zeros((room, patterns), np.int64)
                many = used[0]
                used[0] = 0
                for old in range(many):
                    row = _row(older[0][old], older[1][old], table, rows_pattern, rows_since, used)
                    time[row] = older[2][old]
                    counts[row] = older[3][old]
                    fails[row] = older[4][old]
            for d in range(patterns):
                if not canonical[d] or not (own >> np.uint64(d)) & np.uint64(1):
                    continue
                row = _row(d, since[d], table, rows_pattern, rows_since, used)
                time[row, which[group]] += now - last
                if end:
                    continue
                for q in range(patterns):
                    if (done[event] >> np.uint64(q)) & np.uint64(1):
                        counts[row, q] += 1
                    if (failed[event] >> np.uint64(q)) & np.uint64(1):
                        fails[row, q] += 1
            if end:
                break
            if done[event]:
                for d in range(patterns):
                    if (done[event] >> np.uint64(d)) & np.uint64(1):
                        since[d] = done[event] & ~(np.uint64(1) << np.uint64(d))  # an add in the same step wins
                    elif since[d] != never:
                        since[d] |= done[event]
            last = now
    many = used[0]
    return rows_pattern[:many], rows_since[:many], time[:many], counts[:many], fails[:many]
