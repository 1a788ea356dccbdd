"""The prompt of a graph of one's own, and every way in which it can be none."""

from __future__ import annotations

import numpy as np
import pytest

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs import StarGraph

GRAPH = StarGraph(2, 3, 9)
EDGES = [(1, 5), (3, 1), (3, 0), (0, 7)]  # 3 -> 1 -> 5 and 3 -> 0 -> 7


def test_it_is_the_prompt_of_a_drawn_row():
    graph = StarGraph(3, 4)
    for row in graph.draw(20, np.random.default_rng(0)):
        edges = [tuple(map(int, row[i : i + 2])) for i in range(0, 3 * graph.edges, 3)]
        start, goal = map(int, row[graph.prompt_length - 3 : graph.prompt_length - 1])
        assert graph.encode(edges, start, goal).tolist() == row[: graph.prompt_length].tolist()
        assert graph.encode(np.array(edges), np.int64(start), np.int64(goal)).dtype == np.int64


def test_without_directions_edges_stand_either_way_round():
    graph = StarGraph(2, 3, 9, directed=False)
    turned = [(5, 1), (3, 1), (0, 3), (7, 0)]
    assert graph.encode(turned, 3, 5).tolist() == [5, 1, 9, 3, 1, 9, 0, 3, 9, 7, 0, 11, 3, 5, 10]
    larger = StarGraph(3, 4, directed=False)
    for row in larger.draw(20, np.random.default_rng(0)):
        start, goal = row[larger.prompt_length - 3 :][:2].tolist()
        prompt = larger.encode(larger.edges_of(row[None])[0].tolist(), start, goal)
        assert prompt.tolist() == row[: larger.prompt_length].tolist()
    for wrong in ([*turned[:3], (7, 1)], [(5, 1), (3, 1), (5, 3), (7, 0)], [(5, 1), (3, 1), (8, 2), (2, 8)]):
        with pytest.raises(LookaheadError, match=r"arm|from its start"):
            graph.encode(wrong, 3, 5)


def test_only_the_direction_differs():
    """The same graphs, and half of their edges are turned."""
    ours, turned = (StarGraph(2, 5, directed=directed).draw(2000, Dice(0)) for directed in (True, False))
    same, other = StarGraph().edges_of(ours), StarGraph().edges_of(turned)
    assert np.array_equal(np.sort(same, -1), np.sort(other, -1))
    assert np.array_equal(StarGraph().paths_of(ours), StarGraph().paths_of(turned))
    assert abs((same == other).all(-1).mean() - 0.5) < 0.02


def test_the_goal_may_be_a_subgoal():
    assert GRAPH.encode(EDGES, 3, 1)[-2] == 1


@pytest.mark.parametrize(
    ("edges", "start", "goal", "says"),
    [
        ([(1, 9), *EDGES[1:]], 3, 5, r"0 to 8 \(num_nodes=9\), got 9"),
        ([(1, -1), *EDGES[1:]], 3, 5, "got -1"),
        ([(1, 5.0), *EDGES[1:]], 3, 5, r"got 5\.0"),
        (EDGES, 3, 50, "got 50"),
        (EDGES, 3, 8, r"one of \[0, 1, 5, 7\], got 8"),
        (EDGES, 3, 3, "other than the start"),
        (EDGES, 2, 5, "start 2 is not in the graph"),
        (EDGES, 1, 5, "2 edges from its start, got 1 from 1"),
        (EDGES[1:], 3, 1, "has 4 edges, got 3 between 4 nodes"),
        ([*EDGES, (7, 8)], 3, 5, "got 5 between 6 nodes"),
        ([(1, 5), (3, 1), (3, 0), (5, 7)], 3, 5, "arm 3 -> 1 -> 5 -> 7"),
        ([(5, 1), (3, 1), (3, 0), (0, 7)], 3, 5, "arm 3 -> 1 of"),
        ([(1, 3), (3, 1), (3, 0), (0, 7)], 3, 7, "arm 3 -> 1 -> 3 of"),
        ([(1, 5), (3, 1), (3, 0), (0, 5)], 3, 5, "share no node"),
        ([(3, 1), (3, 1), (1, 5), (1, 5)], 3, 5, "arm 3 -> 1 of"),
        ([(1, 5, 2), *EDGES[1:]], 3, 5, r"pair \(parent, child\), got \(1, 5, 2\)"),
        ([7, *EDGES[1:]], 3, 5, "pair"),
    ],
)
def test_what_is_no_star_is_refused(edges, start, goal, says):
    with pytest.raises(LookaheadError, match=says):
        GRAPH.encode(edges, start, goal)


def test_a_drawn_graph_is_uniform_and_does_not_depend_on_numpy():
    """Small enough to count: 2 arms of 2 nodes out of 3 names, so 3 starts, 2 goals and 2 orders of the edges."""
    rows, counts = np.unique(StarGraph(2, 2, 3).draw(24_000, Dice(0)), axis=0, return_counts=True)
    assert len(rows) == 12
    assert all(abs(n - 2000) < 5 * 2000**0.5 for n in counts)
    frozen = [4, 3, 9, 1, 4, 9, 1, 2, 9, 2, 6, 11, 1, 3, 10, 1, 4, 3, 13]
    assert StarGraph(2, 3, 9).draw(1, Dice(7, (1,)))[0].tolist() == frozen


@pytest.mark.parametrize(
    ("graph", "directed", "number"),
    [
        ((2, 2, 3), True, 3),
        ((1, 2, 3), True, 6),
        ((3, 2, 4), True, 4),
        ((2, 3, 5), True, 60),
        ((1, 2, 3), False, 3),
        ((1, 3, 4), False, 12),
        ((2, 2, 3), False, 3),
        ((3, 2, 4), False, 4),
        ((2, 3, 5), False, 60),
    ],
)
def test_the_number_of_graphs(graph, directed, number):
    graph = StarGraph(*graph, directed)
    drawn = graph.edges_of(graph.draw(5000, np.random.default_rng(0)))
    drawn = drawn if directed else np.sort(drawn, -1)
    assert len({frozenset(map(tuple, edges)) for edges in drawn.tolist()}) == graph.graphs == number


@pytest.mark.parametrize("numbers", [(2.0, 5, 50), (True, 5, 50), (2, "5", 50), (2, 5, None)])
def test_numbers_that_are_not_whole(numbers):
    with pytest.raises(LookaheadError, match="whole number"):
        StarGraph(*numbers)
