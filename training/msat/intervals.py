"""Means over few seeds: their intervals, and the differences of two models that share data and episodes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import inf

from scipy import stats


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of the mean's 95 % interval by Student's t; None for a single value.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    >>> interval([2.0, 2.0])
    (2.0, 2.0)
    """
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(mean - half), float(mean + half)


def in_words(
    values: Sequence[float], scale: float = 1.0, digits: int = 1, limits: tuple[float, float] = (-inf, inf)
) -> str:
    """The mean and its interval, such as `12.0 [10.5, 13.5]`.

    Args:
        values: one a seed.
        scale: of what is written.
        digits: behind the point.
        limits: the least and the largest possible mean; the interval ends there.

    >>> in_words([0.1, 0.2, 0.3], 100)
    '20.0 [-4.8, 44.8]'
    """
    said, ends = f"{scale * statistics.fmean(values):.{digits}f}", interval(values)
    if ends is None:
        return said
    possible = (scale * min(max(end, limits[0]), limits[1]) for end in ends)
    return f"{said} [{', '.join(f'{end:.{digits}f}' for end in possible)}]"
