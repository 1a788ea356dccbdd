"""Star graphs are as the paper draws them, read back from their tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs import StarGraph


def test_lengths_of_the_papers_graphs():
    for degree, length, prompt, row in ((2, 5, 27, 33), (5, 5, 63, 69), (2, 20, 117, 138)):
        graph = StarGraph(degree, length)
        assert (graph.prompt_length, graph.row_length) == (prompt, row)
        assert len(graph.tokens) == 56
        assert graph.draw(3, np.random.default_rng(0)).shape == (3, row)


@given(degree=st.integers(1, 5), length=st.integers(2, 6), seed=st.integers(0, 1000))
def test_a_row_is_a_star_and_its_path(degree: int, length: int, seed: int):
    graph = StarGraph(degree, length)
    (row,) = graph.draw(1, np.random.default_rng(seed))
    *prompt, equals = (graph.tokens[token] for token in row[: graph.prompt_length])
    edges, question = " ".join(prompt).split(" / ")
    pairs = [tuple(edge.split()) for edge in edges.split(" | ")]
    start, goal = question.split()
    path = [graph.tokens[token] for token in row[graph.prompt_length : -1]]
    assert equals == "="
    assert row[-1] == graph.end_token
    assert len({*pairs}) == graph.edges
    assert len({node for pair in pairs for node in pair}) == graph.nodes
    assert (path[0], path[-1], len(path)) == (start, goal, length)
    assert all(edge in pairs for edge in pairwise(path))
    parents = [parent for parent, _ in pairs]
    assert parents.count(start) == degree
    assert all(parents.count(parent) == 1 for parent in parents if parent != start)


@pytest.mark.parametrize(
    ("numbers", "says"), [((0, 5, 50), "degree"), ((2, 1, 50), "length"), ((5, 20, 50), "96 nodes")]
)
def test_numbers_that_make_no_graph(numbers: tuple[int, int, int], says: str):
    with pytest.raises(LookaheadError, match=says):
        StarGraph(*numbers)


def test_more_names_than_memory_holds_are_refused():
    with pytest.raises(LookaheadError, match="num_nodes must be at most 100,000, got 1000000000"):
        StarGraph(1, 1_000_000, num_nodes=10**9)


def test_no_graph_is_a_row_of_none():
    assert StarGraph().draw(0, np.random.default_rng(0)).shape == (0, 33)


def test_a_direction_is_true_or_false():
    with pytest.raises(LookaheadError, match="directed must be True or False, got 'no'"):
        StarGraph(directed="no")  # type: ignore[arg-type]
