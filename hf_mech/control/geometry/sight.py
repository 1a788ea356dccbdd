"""Lines between walls: who sees whom, how much of a foe shows past a corner, and how far walls are."""

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
    share, place = _crossings(start, (ends - start)[..., None, :], walls)
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
    """Points on the border of the box from -1 to 1, [points, 2]; a whole number of them on each side."""
    side = np.linspace(-1, 1, points // 4, endpoint=False)
    one = np.ones_like(side)
    return np.concatenate([np.stack(xy, 1) for xy in ((side, -one), (one, side), (-side, one), (-one, -side))])


def _cross(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]
