"""Draws the rooms in the first person: one ray for each column of the frame."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hf_mech.control.geometry.sight import hits
from hf_mech.control.rooms.plan import GOAL, GOAL_RADIUS, room, walls

FIELD_OF_VIEW = 90.0
WALL_HEIGHT, GOAL_HEIGHT = 1.0, 0.5
CEILING, FLOOR, VEST = (56, 64, 72), (96, 88, 80), (40, 220, 60)
PAINTS = np.array([(200, 80, 70), (80, 110, 200), (220, 190, 80), (160, 90, 190)], np.float64)
"""The colour of the walls of each room, as seen from inside."""


class Painter:
    """Draws frames of one size.

    Args:
        height, width: of the frames.
    """

    def __init__(self, height: int, width: int) -> None:
        self._walls = walls()
        along = self._walls[:, 1] - self._walls[:, 0]
        # Walls that run north are darker, so that corners show.
        self._light = np.where(along[:, 0] == 0, 0.8, 1.0)
        edge = math.tan(math.radians(FIELD_OF_VIEW / 2))
        self._across = np.linspace(edge, -edge, width)  # from the left to the right
        self._rows = ((np.arange(height) + 0.5) / height - 0.5)[:, None]  # 0 is the horizon
        self._empty = np.empty((height, width, 3), np.uint8)
        self._empty[: height // 2], self._empty[height // 2 :] = CEILING, FLOOR

    def __call__(self, x: float, y: float, angle: float) -> NDArray[np.uint8]:
        """The frame [height, width, 3] that a player at (x, y) sees who looks to the angle, in degrees."""
        eye, turn = np.array([x, y]), math.radians(angle)
        ahead, left = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
        rays = ahead + self._across[:, None] * left
        distance, wall = hits(eye, rays, self._walls)
        # A point a little before the wall is in the room that the wall is seen from.
        paint = PAINTS[room(eye + 0.99 * distance[:, None] * rays)] * self._light[wall, None]
        paint = (paint / (1 + 0.15 * distance[:, None])).astype(np.uint8)
        frame = self._empty.copy()
        np.copyto(frame, paint, where=(np.abs(self._rows) < WALL_HEIGHT / 2 / distance)[..., None])
        near = _to_goal(np.array(GOAL) - eye, rays)
        stands = (self._rows > (0.5 - GOAL_HEIGHT) / near) & (self._rows < 0.5 / near) & (near < distance)
        np.copyto(frame, np.array(VEST, np.uint8), where=stands[..., None])
        return frame


def _to_goal(goal: NDArray[np.float64], rays: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance [rays] to the goal's cylinder, in lengths of the ray; infinite where a ray misses it."""
    along = rays @ goal
    square = (rays * rays).sum(1)
    inside = along * along - square * (goal @ goal - GOAL_RADIUS**2)
    with np.errstate(invalid="ignore"):
        return np.where((inside > 0) & (along > 0), (along - np.sqrt(inside)) / square, np.inf)
