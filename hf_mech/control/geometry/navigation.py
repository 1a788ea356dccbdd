"""The shortest way to a goal between walls: distances on a grid, and the farthest point of the way in sight."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from hf_mech.control.geometry.sight import distances_to_walls

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
        start = here = self._nearest_free(cell)
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

    def _nearest_free(self, cell: Cell) -> Cell:
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
