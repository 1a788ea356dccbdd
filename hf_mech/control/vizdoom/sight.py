"""Lines of sight between walls: who sees whom, and how much of a foe shows past a corner."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clear(start: NDArray[np.float64], ends: NDArray[np.float64], walls: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the straight lines from one point to others cross no wall.

    Args:
        start: [2].
        ends: [..., 2].
        walls: [walls, 2, 2], the ends of each.

    Returns:
        [...].
    """
    along = (ends - start)[..., None, :]
    first, wall = walls[:, 0] - start, walls[:, 1] - walls[:, 0]
    determinant = _cross(along, wall)
    # Parallel lines give infinite or undefined shares, which are in no range.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = _cross(first, wall) / determinant
        place = _cross(first, along) / determinant
    crossed: NDArray[np.bool_] = (share > 0) & (share < 1) & (place >= 0) & (place <= 1)
    return np.asarray(~crossed.any(-1))


def exposed(
    start: NDArray[np.float64], centers: NDArray[np.float64], radius: float, walls: NDArray[np.float64], rays: int = 24
) -> NDArray[np.float64]:
    """The angles under which a point sees a part of each of some boxes.

    Args:
        start: [2].
        centers: [boxes, 2]; the boxes lie along the axes.
        radius: half of their width.
        walls: [walls, 2, 2].
        rays: the points of each box that are tried.

    Returns:
        [boxes, 2]: the least and the greatest angle in degrees, counted to the left from the east; NaN for a hidden box.
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


def _border(points: int) -> NDArray[np.float64]:
    """Points on the border of the box from -1 to 1, [points, 2]; a whole number of them on each side."""
    side = np.linspace(-1, 1, points // 4, endpoint=False)
    one = np.ones_like(side)
    return np.concatenate([np.stack(xy, 1) for xy in ((side, -one), (one, side), (-side, one), (-one, -side))])


def _cross(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]


__all__ = ["clear", "exposed"]
