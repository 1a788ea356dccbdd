"""Lines between walls, and ways around them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_mech.control.geometry import Navigator, clear, distances_to_walls, exposed, hits, steer

WALL = np.array([[[0.0, -1.0], [0.0, 1.0]]])  # one wall, across the x axis
BOX = [[(0, 0), (10, 0)], [(10, 0), (10, 10)], [(10, 10), (0, 10)], [(0, 10), (0, 0)]]
CUP = np.array([*BOX, [(5, 0), (5, 8)]], float)


def moved(x: float, y: float) -> NDArray[np.float64]:
    """The one wall at another place."""
    return np.asarray(WALL + np.array([x, y]))


def test_walls_block_lines_that_cross_them() -> None:
    ends = np.array([[1.0, 0.0], [1.0, 3.0], [-0.5, 0.0], [-2.0, 0.0], [-1.0, 5.0]])
    assert clear(np.array([-1.0, 0.0]), ends, WALL).tolist() == [False, True, True, True, True]


def test_a_ray_stops_at_the_first_wall() -> None:
    walls = np.concatenate([moved(5, 0), moved(3, 0)])
    distances, numbers = hits(np.zeros(2), np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]), walls)
    assert distances.tolist() == [3.0, 1.5, np.inf]
    assert numbers[:2].tolist() == [1, 1]


def test_distances_count_to_the_ends_of_walls_too() -> None:
    points = np.array([[[2.0, 0.0], [0.0, 3.0]], [[3.0, 5.0], [0.0, 0.5]]])
    assert distances_to_walls(points, WALL).tolist() == [[2.0, 2.0], [5.0, 0.0]]


def test_a_box_shows_past_the_end_of_a_wall() -> None:
    """The corners of the foe's box are (1, 0.5) and (1, 2.5); the wall hides all that is below 45 degrees."""
    eye, foe = np.array([-1.0, 0.0]), np.array([[2.0, 1.5]])
    top, bottom = np.degrees(np.arctan2(2.5, 2)), np.degrees(np.arctan2(0.5, 4))
    assert exposed(eye, foe, 1.0, WALL, rays=4000)[0] == pytest.approx([45.0, top], abs=0.1)
    assert exposed(eye, foe, 1.0, moved(0, 9))[0] == pytest.approx([bottom, top])
    assert np.isnan(exposed(eye, foe, 1.0, 9 * WALL)).all()


def test_angles_of_a_box_are_not_cut_behind_the_player() -> None:
    low, high = exposed(np.zeros(2), np.array([[-5.0, 0.0]]), 1.0, moved(9, 0))[0]
    assert high - low == pytest.approx(2 * np.degrees(np.arctan(1 / 4)))


def test_the_way_goes_around_a_wall() -> None:
    way = Navigator(CUP, goal=(9.0, 1.0), clearance=0.5, cell=0.25)
    x, y = 1.0, 1.0
    targets = []
    while (x, y) != (9.0, 1.0):
        x, y = way.target(x, y)
        targets.append((x, y))
        assert len(targets) < 10
    assert any(y > 8 for _, y in targets)
    assert way.target(0.1, 0.1)[1] > 5  # a place that is too near to walls has a way too


@pytest.mark.parametrize(
    ("off", "decision"), [(0, (0, 1)), (4, (0, 1)), (30, (1, 1)), (-30, (2, 1)), (90, (1, 0)), (-170, (2, 0))]
)
def test_it_turns_to_the_target_and_walks_when_it_is_ahead(off: float, decision: tuple[int, int]) -> None:
    assert steer(off, aimed_within=5, walk_within=40) == decision
