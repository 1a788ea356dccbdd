"""The objective in blocks is Eq. 2 pair by pair, in value and in every gradient."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from hf_mech.models.belief_state.belief_state_objective import TextHead, belief_state_loss, belief_state_loss_reference
from hf_mech.models.belief_state.belief_state_pairs import PairWeights, Sequences
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateError

END = 6


def sequences(generator: torch.Generator, batch: int, length: int) -> Sequences:
    """Rows of one or two sequences with padding on both sides, and some untrained tokens."""
    tokens = torch.randint(0, END, (batch, length), generator=generator)
    sequence = torch.full((batch, length), -1)
    for row in range(batch):
        begin, middle, end = sorted(torch.randperm(length + 1, generator=generator)[:3].tolist())
        sequence[row, begin:middle], sequence[row, middle:end] = 0, 1
        tokens[row, middle - 1], tokens[row, end - 1] = END, END
    trained = (torch.rand(batch, length, generator=generator) < 0.8) & (sequence >= 0)
    return Sequences(tokens, trained, sequence, END)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    gap=st.sampled_from([1, 2]),
    weights=st.sampled_from(["sequence", "gap"]),
    suffix=st.booleans(),
    prev=st.booleans(),
)
def test_blocks_are_the_reference(seed: int, gap: int, weights: PairWeights, suffix: bool, prev: bool):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    made = sequences(generator, 3, 9)
    head = TextHead(5, 8, 3, END + 1, suffix=suffix, prev=prev).double()
    states = torch.randn(2, 3, 9, 5, dtype=torch.float64, generator=generator)

    def run(loss, **options):
        first, second = (part.clone().requires_grad_() for part in states)
        total, tokens = loss(first, second if suffix else None, head, made, gap, pair_weights=weights, **options)
        inputs = [first, *([second] if suffix else []), *head.parameters()]
        return total.detach(), tokens, torch.autograd.grad(total / tokens, inputs)

    if not made.weights(gap, weights).any():
        with pytest.raises(BeliefStateError, match="two trained tokens"):
            run(belief_state_loss)
        return
    expected = run(belief_state_loss_reference)
    for size in (1, 4, 1000):
        value, tokens, gradients = run(belief_state_loss, block_size=size)
        assert_close(value, expected[0])
        assert tokens == expected[1]
        for ours, theirs in zip(gradients, expected[2], strict=True):
            assert_close(ours, theirs)


def test_pairs_of_a_star_graph():
    """15 pairs for a path of five nodes behind an untrained prompt of 27 tokens, with its end token."""
    tokens = torch.arange(33)[None]
    trained = torch.arange(33)[None] >= 27
    made = Sequences(tokens, trained, torch.zeros_like(tokens), end_token=32)
    pairs = [made.pairs(gap) for gap in made.gaps(2)]
    assert sum(int(counts.sum()) for counts, _, _ in pairs) == 15
    for gap, (counts, nexts, prevs) in zip(made.gaps(2), pairs, strict=True):
        (i,) = counts[0].nonzero(as_tuple=True)
        assert (i >= 26).all()
        assert torch.equal(nexts[0, i], i + 1)
        assert torch.equal(prevs[0, i], i + gap - 1)
