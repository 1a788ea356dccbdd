"""The geometry of players: what can be seen, the way to a goal, and the shortest turns."""

from __future__ import annotations

import heapq
import math
from collections import deque
from functools import cache

import numpy as np
from numpy.typing import NDArray

# ----------------------------------------------------------------------------------------------------------------------
# Lines between walls: who sees whom, how much of a foe shows past a corner, and how far walls are.


def clear(start: NDArray[np.float64], ends: NDArray[np.float64], walls: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the straight lines from one point to others cross no wall.

    Args:
        start: [2].
        ends: [..., 2].
        walls: [walls, 2, 2], the ends of each.

    Returns:
        [...].
    """
    share, place = _crossings(start, (ends - start)[..., None, :], walls)
    crossed: NDArray[np.bool_] = (share > 0) & (share < 1) & (place >= 0) & (place <= 1)
    return np.asarray(~crossed.any(-1))


def exposed(
    start: NDArray[np.float64], centers: NDArray[np.float64], radius: float, walls: NDArray[np.float64], rays: int = 24
) -> NDArray[np.float64]:
    """The directions in which a point sees some part of each box.

    Args:
        start: [2].
        centers: [boxes, 2]; the boxes lie along the axes.
        radius: half of their width.
        walls: [walls, 2, 2].
        rays: the points of each box's border that are tried, a multiple of 4.

    Returns:
        [boxes, 2]: the least and the greatest angle in degrees, to the left of east; NaN for a hidden box.
    """
    points = centers[:, None] + radius * _border(rays)
    off = points - start
    middle = centers - start
    # Relative to the direction of the centre, so that no interval is cut at 180 degrees.
    angles = np.degrees(np.arctan2(_cross(middle[:, None], off), (middle[:, None] * off).sum(-1)))
    seen = clear(start, points, walls)
    bounds = np.stack([np.where(seen, angles, np.inf).min(1), np.where(seen, angles, -np.inf).max(1)], 1)
    bounds[~seen.any(1)] = np.nan
    return bounds + np.degrees(np.arctan2(middle[:, 1], middle[:, 0]))[:, None]


def distances_to_walls(points: NDArray[np.float64], walls: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance of each point to its nearest wall.

    Args:
        points: [..., 2].
        walls: [walls, 2, 2].

    Returns:
        [...].
    """
    off = points[..., None, :] - walls[:, 0]
    along = walls[:, 1] - walls[:, 0]
    share = np.clip((off * along).sum(-1) / (along * along).sum(-1), 0, 1)
    apart = off - share[..., None] * along
    nearest: NDArray[np.float64] = np.sqrt((apart * apart).sum(-1).min(-1))
    return nearest


def hits(
    start: NDArray[np.float64], directions: NDArray[np.float64], walls: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The first wall on each ray.

    Args:
        start: [2].
        directions: [rays, 2].
        walls: [walls, 2, 2].

    Returns:
        The distances [rays], in lengths of the direction, infinite where no wall is hit; and the walls' numbers [rays].
    """
    share, place = _crossings(start, directions[:, None], walls)
    share = np.where((share > 0) & (place >= 0) & (place <= 1), share, np.inf)
    nearest = share.argmin(1)
    return share[np.arange(len(share)), nearest], nearest


def _crossings(
    start: NDArray[np.float64], along: NDArray[np.float64], walls: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where lines [..., 1, 2] from a point cross walls, [..., walls]: as shares of the line, and of the wall.

    Parallel lines give infinite or undefined shares, which lie in no range.
    """
    first, wall = walls[:, 0] - start, walls[:, 1] - walls[:, 0]
    determinant = _cross(along, wall)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _cross(first, wall) / determinant, _cross(first, along) / determinant


def _border(points: int) -> NDArray[np.float64]:
    """`points` points, a multiple of 4, on the border of the box from -1 to 1, [points, 2]."""
    side = np.linspace(-1, 1, points // 4, endpoint=False)
    one = np.ones_like(side)
    return np.concatenate([np.stack(xy, 1) for xy in ((side, -one), (one, side), (-side, one), (-one, -side))])


def _cross(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]


# ----------------------------------------------------------------------------------------------------------------------
# The shortest way to a goal between walls: distances on a grid, and the farthest point of the way in sight.


Cell = tuple[int, int]
_STEPS = [(i, j, math.hypot(i, j)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


class Navigator:
    """Ways to one goal.

    The distance of every free cell to the goal is found once, by Dijkstra's algorithm from the goal. A way goes from a
    cell to its neighbour that is nearest to the goal.

    Args:
        walls: [walls, 2, 2], the ends of each, (x, y).
        goal: (x, y).
        clearance: the least distance between the way and a wall.
        cell: the width of a cell of the grid.
    """

    def __init__(self, walls: NDArray[np.float64], goal: tuple[float, float], clearance: float, cell: float) -> None:
        self._cell = cell
        self._corner = walls.min((0, 1))
        shape = tuple(np.ceil((walls.max((0, 1)) - self._corner) / cell).astype(int) + 1)
        centers = self._corner + np.moveaxis(np.indices(shape), 0, -1) * cell
        self._free = distances_to_walls(centers, walls) >= clearance
        self._distance = self._distances(self._cell_of(goal))
        self._targets: dict[Cell, tuple[float, float]] = {}

    def target(self, x: float, y: float) -> tuple[float, float]:
        """The farthest point of the way to the goal that can be reached from (x, y) in a straight line."""
        cell = self._cell_of((x, y))
        if cell not in self._targets:
            self._targets[cell] = self._target(cell)
        return self._targets[cell]

    def _target(self, cell: Cell) -> tuple[float, float]:
        start = here = self._nearest_with_a_way(cell)
        farthest = here
        while self._distance[here] > 0:
            here = min(self._neighbours(here), key=lambda other: self._distance[other[0]])[0]
            if not self._in_sight(start, here):
                break
            farthest = here
        x, y = self._corner + np.array(farthest) * self._cell
        return float(x), float(y)

    def _distances(self, goal: Cell) -> NDArray[np.float64]:
        distance = np.full(self._free.shape, np.inf)
        distance[goal] = 0.0
        queue = [(0.0, goal)]
        while queue:
            so_far, cell = heapq.heappop(queue)
            if so_far > distance[cell]:
                continue
            for other, length in self._neighbours(cell):
                if so_far + length < distance[other]:
                    distance[other] = so_far + length
                    heapq.heappush(queue, (so_far + length, other))
        return distance

    def _neighbours(self, cell: Cell) -> list[tuple[Cell, float]]:
        around = [((cell[0] + i, cell[1] + j), length) for i, j, length in _STEPS]
        return [(other, length) for other, length in around if self._inside(other) and self._free[other]]

    def _inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self._free.shape[0] and 0 <= cell[1] < self._free.shape[1]

    def _nearest_with_a_way(self, cell: Cell) -> Cell:
        """The cell itself if it has a way to the goal, or the nearest that has one."""
        cells = np.argwhere(np.isfinite(self._distance))
        nearest = cells[((cells - cell) ** 2).sum(1).argmin()]
        return int(nearest[0]), int(nearest[1])

    def _in_sight(self, start: Cell, end: Cell) -> bool:
        """Whether all cells on the straight line are free."""
        points = 2 * max(abs(end[0] - start[0]), abs(end[1] - start[1])) + 1
        line = np.linspace(start, end, points).round().astype(int)
        return bool(self._free[line[:, 0], line[:, 1]].all())

    def _cell_of(self, point: tuple[float, float]) -> Cell:
        i, j = ((np.array(point) - self._corner) / self._cell).round().astype(int)
        return int(i), int(j)


def steer(off: float, aimed_within: float, walk_within: float) -> tuple[int, int]:
    """The turn and the walk towards a target.

    Args:
        off: the degrees to turn to the left to face the target, -180 to 180.
        aimed_within: no turn if it is off by less.
        walk_within: walk, also while turning, if it is off by less.

    Returns:
        The turn, 0 none, 1 left, 2 right, and the walk, 0 none, 1 forward.
    """
    turn = 0 if abs(off) < aimed_within else 1 if off > 0 else 2
    return turn, int(abs(off) < walk_within)


# ----------------------------------------------------------------------------------------------------------------------
# Turning by a precise angle.
#
# ViZDoom turns by one unit in each of its steps while a turn is new, and by two from the sixth step on. With four steps
# a decision, a turn that is held makes 4, 7, 8, 8, ... units: 7.0, 12.3, 14.1 degrees. Turning back, or pausing,
# reaches every whole number of units, for example 4 to the left, 7 to the left and 8 to the right: 3 to the left.


UNIT = 320 / 65536 * 360
"""Degrees of one unit, 320 of the engine's 65,536 to a circle."""
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
