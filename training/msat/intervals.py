"""Means over few seeds: their intervals, and the differences of two models that share data and episodes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % quantiles of Student's t with 1 to 9 degrees of freedom."""


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of the mean's 95 % interval by Student's t; None for one value or more than ten.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    if not 2 <= len(values) <= len(T_95) + 1:
        return None
    half = T_95[len(values) - 2] * statistics.stdev(values) / len(values) ** 0.5
    mean = statistics.fmean(values)
    return mean - half, mean + half


def in_words(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """The mean and its interval, such as `12.0 [10.5, 13.5]`.

    >>> in_words([0.1, 0.2, 0.3], 100)
    '20.0 [-4.8, 44.8]'
    """
    mean, ends = scale * statistics.fmean(values), interval(values)
    said = f"{mean:.{digits}f}"
    return said if ends is None else f"{said} [{', '.join(f'{scale * end:.{digits}f}' for end in ends)}]"
