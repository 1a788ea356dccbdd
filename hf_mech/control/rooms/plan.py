"""The plan of the four rooms: where walls, doors and the goal are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE = 8.0
"""The side of the square that the rooms share. The inner walls cross in its middle."""
DOOR = 1.2
GOAL = (7.0, 1.0)
GOAL_RADIUS = 0.3
BODY = 0.2
"""The radius of the player."""


def walls() -> NDArray[np.float64]:
    """All walls, [walls, 2, 2]: the two ends of each, (x, y)."""
    border = [((0, 0), (SIZE, 0)), ((SIZE, 0), (SIZE, SIZE)), ((SIZE, SIZE), (0, SIZE)), ((0, SIZE), (0, 0))]
    middle, first, second, half = SIZE / 2, SIZE / 4, 3 * SIZE / 4, DOOR / 2
    pieces = [(0, first - half), (first + half, second - half), (second + half, SIZE)]
    upright = [((middle, low), (middle, high)) for low, high in pieces]
    flat = [((low, middle), (high, middle)) for low, high in pieces]
    return np.array(border + upright + flat, np.float64)


def room(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of the room, 0 to 3, of each point [..., 2]."""
    east, north = (points > SIZE / 2).astype(np.int64).swapaxes(0, -1)
    return np.asarray(east + 2 * north)
