"""Turning by a precise angle.

The engine turns by one unit an engine's step while a turn is new, and by two from the sixth step on. With four steps a
decision, a turn that is held makes 4, 7, 8, 8, ... units: 7.0, 12.3, 14.1 degrees. Turning back, or pausing, reaches
every whole number of units, for example 4 to the left, 7 to the left and 8 to the right: 3 to the left.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cache

UNIT = 320 / 65536 * 360
"""Degrees of one unit."""
STILL, LEFT, RIGHT = 0, 1, 2
_TURNS = (4, 7, 8)  # units of a decision, by the decisions that a turn has been held for
_MOST = 110  # units; more than half a circle


def next_turn(held: int, low: float, high: float) -> tuple[int, int] | None:
    """The first decision of a shortest sequence of turns that ends between two angles.

    Args:
        held: the decisions that a turn, to either side, has been held for.
        low, high: degrees to the left.

    Returns:
        The turn (`STILL`, `LEFT` or `RIGHT`) and the number of decisions of the sequence, or None: no whole number of
        units lies between the angles.
    """
    if math.isnan(low) or math.isnan(high):
        return None
    angles = range(math.ceil(low / UNIT), math.floor(high / UNIT) + 1)
    plans = _plans()[min(held, 2)]
    middle = (low + high) / 2 / UNIT
    reachable = [(plans[angle][1], abs(angle - middle), plans[angle][0]) for angle in angles if angle in plans]
    if not reachable:
        return None
    length, _, turn = min(reachable)
    return turn, length


@cache
def _plans() -> list[dict[int, tuple[int, int]]]:
    """The first turn and the length of a shortest sequence to each angle, for each time that a turn has been held."""
    return [_plans_from(held) for held in range(3)]


def _plans_from(held: int) -> dict[int, tuple[int, int]]:
    """Breadth-first search over (units turned, decisions held)."""
    plans = {0: (STILL, 0)}
    seen = {(0, held)}
    queue = deque([(0, held, STILL, 0)])
    while queue:
        units, held, first, length = queue.popleft()
        for turn, sign in ((LEFT, 1), (RIGHT, -1), (STILL, 0)):
            after = (units + sign * _TURNS[held], min(held + 1, 2) if sign else 0)
            if after in seen or abs(after[0]) > _MOST:
                continue
            seen.add(after)
            plans.setdefault(after[0], (first if length else turn, length + 1))
            queue.append((*after, first if length else turn, length + 1))
    return plans
