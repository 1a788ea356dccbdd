"""Rules: a pattern is impossible behind another one until a third. What the gaps support, priced in bits.

A rule says of a tuple of objects: behind `delete`, `need` is impossible until one of `adds`. A precondition of STRIPS
is a set of such rules: an atom that A adds and D deletes forbids q exactly where one of the rules (A, d, q), d in D,
does. So a lifted domain is learned rule by rule.

For d and q, A must hit the gap before every q, so the candidates are hitting sets; tolerant ones, as a log may be
wrong. What counts is how surprising the silence is. Where the rule is silent, q comes at the rate r; the rule forbids
q for `expected` / r steps, and there q came `broken` times. If the log is wrong with the chance epsilon, the rule saves

    (expected (1 - epsilon) + broken ln epsilon) / ln 2  bits

besides what failed attempts say, and costs those of its description. An effect that always changes its atom is the
special case d = q of SIFT. The rate r is the larger of two: that in all the time in which the rule is silent,
and a cautious one of the time behind an add, where an atom that begins false does not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.lifted.learning.events import Kind, bits_of
from hf_mech.planning.lifted.learning.gaps import NEVER, Gaps


class Rule(NamedTuple):
    """Behind the pattern `delete`, `need` is impossible for the tuple until one of the patterns `adds`.

    Attributes:
        kind: the number of the kind.
        adds: patterns, as bits.
        delete, need: the numbers of patterns.
    """

    kind: int
    adds: int
    delete: int
    need: int


class Evidence(NamedTuple):
    """How often a rule was in force when `need` could have come, and how often it came.

    Attributes:
        bits: that the rule saves by itself, its price not counted.
        expected: the number of `need` at the usual rate, in the time that the rule forbids it.
        broken: the number in truth.
        refused: of failed attempts in that time.
    """

    bits: float
    expected: float
    broken: int
    refused: int


@dataclass(frozen=True)
class Search:
    """How candidates are found.

    Args:
        width: the sets of adds that are extended, the best ones of each size.
        most_adds: patterns in such a set.
        kept: the candidates of a pair of patterns at most; none contains another.
        price: the bits of a rule besides the names of its patterns.
    """

    width: int = 8
    most_adds: int = 6
    kept: int = 4
    price: float = 8.0


def name_bits(kind: Kind) -> float:
    """The bits of the name of a pattern."""
    return math.log2(max(2, len(kind.patterns)))


class Pair:
    """The gaps between two patterns d and q of a kind.

    Args:
        gaps: of the kind.
        rows: those of d.
        need: q.
    """

    def __init__(self, gaps: Gaps, rows: NDArray[np.int64], need: int) -> None:
        able = (gaps.possible >> np.uint64(need)) & np.uint64(1) > 0
        time, done, failed = gaps.time[rows][:, able].sum(1), gaps.done[rows, need], gaps.failed[rows, need]
        some = (time > 0) | (done > 0) | (failed > 0)
        since = gaps.since[rows]
        first = some & (since == NEVER)
        self.before = int(done[first].sum()), float(time[first].sum()), int(failed[first].sum())
        later = some & (since != NEVER)
        self.since, self.time, self.done, self.failed = since[later], time[later], done[later], failed[later]
        self.count = self.before[0] + int(self.done.sum())

    def evidence(self, adds: Iterable[int], epsilon: float) -> list[Evidence]:
        """For each set of adds."""
        sets = np.array(list(adds), np.uint64)
        free = (self.since[None, :] & sets[:, None]) != 0  # [sets, gaps]
        done, time, failed = free @ self.done, free @ self.time.astype(np.float64), free @ self.failed
        added = (done - np.sqrt(done)) / np.maximum(time, 1)  # the rate behind an add, cautiously
        broken, forbidden, refused = self.done.sum() - done, self.time.sum() - time, self.failed.sum() - failed
        done, time, failed = done + self.before[0], time + self.before[1], failed + self.before[2]
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.where((time > 0) & (done > 0), np.maximum(done / time, added) * forbidden, 0.0)
            usual = (failed + 0.5) / (failed + done + 1)  # of the attempts, how many fail where the rule is silent
        bits = (expected * (1 - epsilon) + broken * math.log(epsilon) - refused * np.log(usual)) / math.log(2)
        columns = (bits.tolist(), expected.tolist(), broken.tolist(), refused.tolist())
        return [Evidence(*own) for own in zip(*columns, strict=True)]

    def likely_adds(self, adds: int) -> list[int]:
        """Patterns that would mend the most breaks of the rule, and those in its commonest broken gap."""
        open_ = (self.done > 0) & ((self.since & np.uint64(adds)) == 0) & (self.since != 0)
        if not open_.any():
            return []
        since, done = self.since[open_], self.done[open_]
        mended: Counter[int] = Counter()
        for gap, times in zip(since.tolist(), done.tolist(), strict=True):
            for pattern in bits_of(gap):
                mended[pattern] += times
        worst = int(since[int(np.argmax(done))])
        return list(dict.fromkeys([pattern for pattern, _ in mended.most_common(5)] + list(bits_of(worst))))


def pairs_of(gaps: Gaps, kind: Kind, undone: bool = False) -> Iterator[tuple[int, int, Pair]]:
    """Every d and q of a kind that came at least once; if `undone`, also each q that came never but failed behind d."""
    for delete in np.unique(gaps.pattern).tolist():
        rows = np.flatnonzero(gaps.pattern == delete)
        for need in range(len(kind.patterns)):
            pair = Pair(gaps, rows, need)
            if len(pair.since) and (pair.count or (undone and pair.failed.any())):
                yield delete, need, pair


def candidates(number: int, kind: Kind, gaps: Gaps, epsilon: float, search: Search) -> dict[Rule, Evidence]:
    """The rules of a kind that save more bits than they cost.

    Args:
        number: of the kind.
        kind, gaps: the kind and its statistics.
        epsilon: the chance that a step of the log is wrong; 0: never.
        search: how to look for them.
    """
    floor = max(epsilon, 1e-300)
    name = name_bits(kind)
    found: dict[Rule, Evidence] = {}
    for delete, need, pair in pairs_of(gaps, kind):
        seen: dict[int, Evidence] = dict(zip([0], pair.evidence([0], floor), strict=True))
        frontier = [0]

        def worth(adds: int, seen: dict[int, Evidence] = seen) -> float:
            return seen[adds].bits - search.price - name * (adds.bit_count() + 2)

        for _ in range(search.most_adds):
            longer = dict.fromkeys(
                adds | 1 << pattern
                for adds in frontier
                for pattern in pair.likely_adds(adds)
                if pattern not in (delete, need)
            )
            fresh = [adds for adds in longer if adds not in seen]
            if not fresh:
                break
            seen.update(zip(fresh, pair.evidence(fresh, floor), strict=True))
            frontier = sorted(fresh, key=worth, reverse=True)[: search.width]
        kept: list[int] = []
        for adds in sorted(seen, key=worth, reverse=True):
            if worth(adds) <= 0 or len(kept) == search.kept:
                break
            if not any(one & adds in (one, adds) for one in kept):
                kept.append(adds)
                found[Rule(number, adds, delete, need)] = seen[adds]
    return found


def relatives(
    number: int,
    kind: Kind,
    gaps: Gaps,
    epsilon: float,
    adds: Iterable[int],
    least: float = 1.0,
    undone: bool = False,
) -> dict[Rule, Evidence]:
    """The rules with these sets of adds, for every d and q of which the log says something.

    Args:
        number, kind, gaps, epsilon: as for `candidates`.
        adds: the sets.
        least: how many q are expected at least.
        undone: also q that the log has as failures alone.
    """
    floor, sets = max(epsilon, 1e-300), list(adds)
    found: dict[Rule, Evidence] = {}
    for delete, need, pair in pairs_of(gaps, kind, undone):
        for own, evidence in zip(sets, pair.evidence(sets, floor), strict=True):
            if not own >> delete & 1 and evidence.bits * math.log(2) > least:
                found[Rule(number, own, delete, need)] = evidence
    return found
