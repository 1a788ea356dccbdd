"""Theorem 5's reduction decides parity; the counter-examples of Theorems 3 and 4 are exactly uniform."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs import COUNTEREXAMPLES, parity_graph, parity_rows


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("spare", [None, 25])
def test_the_first_step_is_the_parity(size: int, spare: int | None):
    """All strings of a length: the edges are those of the proof, and the path follows them to the vertex n."""
    strings = np.array(list(product((0, 1), repeat=size)))
    rows = parity_rows(strings, spare)
    graph = parity_graph(size, spare or 2 * size + 3)
    n = size + 1
    assert rows.shape == (len(strings), graph.row_length)
    for x, row in zip(strings.tolist(), rows, strict=True):
        edges = (graph.edges_of(row[None])[0] - n).tolist()
        expected = [[0, 1], [0, -1]]
        for i in range(1, n):
            side = -1 if x[i - 1] else 1
            expected += [[i, side * (i + 1)], [-i, -side * (i + 1)]]
        assert edges == expected
        path = (graph.paths_of(row[None])[0] - n).tolist()
        assert all([a, b] in edges for a, b in pairwise(path))
        assert (path[0], path[-1]) == (0, n)
        assert path[1] == (1 if sum(x) % 2 == 0 else -1)
        named = [(a + n, b + n) for a, b in edges]
        assert graph.encode(named, n, 2 * n).tolist() == row[: graph.prompt_length].tolist()
    assert len(np.unique(rows, axis=0)) == 2**size


def test_what_are_no_bits_is_refused():
    for bits in (np.array([[0, 2]]), np.array([0, 1]), np.array([[0.5]])):
        with pytest.raises(LookaheadError, match="of 0 and 1"):
            parity_rows(bits)
    with pytest.raises(LookaheadError, match="bits must be a whole number, 1 or more, got 0"):
        parity_rows(np.zeros((1, 0), np.int64))
    with pytest.raises(LookaheadError, match="13 nodes, more than the 12 names"):
        parity_rows(np.zeros((1, 5), np.int64), 12)


def test_the_counterexamples_of_the_proofs():
    assert COUNTEREXAMPLES["theorem-3"].sequences == ("ACA", "BCB")
    assert COUNTEREXAMPLES["theorem-4"].sequences == ("DAA", "DBB", "SAB", "SBA")


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_every_block_holds_every_sequence_once(name: str):
    example = COUNTEREXAMPLES[name]
    texts = ["".join(example.tokens[i] for i in row) for row in example.draw(500, Dice(0))]
    size = len(example.sequences)
    blocks = [tuple(texts[i : i + size]) for i in range(0, len(texts), size)]
    assert {tuple(sorted(block)) for block in blocks} == {tuple(f"{text}<eos>" for text in example.sequences)}
    orders = Counter(blocks)
    assert len(orders) == {2: 2, 4: 24}[size]
    assert max(orders.values()) < 3 * 500 / len(orders)
