"""Random pairs stand for all pairs: their loss and its gradients are unbiased."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.belief_state.belief_state_objective import belief_state_loss
from hf_mech.models.belief_state.belief_state_pairs import Ends, PairWeights
from tests.models.belief_state.test_objective_conditions import batch, head


def loss_and_gradient(
    count: int | None, seed: int = 0, gap: int = 2, weights: PairWeights = "sequence"
) -> tuple[torch.Tensor, torch.Tensor]:
    sequences, prefixes, suffixes = batch()
    torch.manual_seed(seed)
    loss, _ = belief_state_loss(
        prefixes, suffixes, head_of_test, sequences, gap, pairs_per_sequence=count, pair_weights=weights
    )
    return loss.detach(), torch.autograd.grad(loss, prefixes)[0]


head_of_test = head()


@pytest.mark.parametrize("weights", ["sequence", "gap"])
@pytest.mark.parametrize("gap", [1, 2])
def test_every_pair_is_drawn_once_if_there_are_no_more(gap: int, weights: PairWeights):
    every, drawn = (loss_and_gradient(count, gap=gap, weights=weights) for count in (None, 10_000))
    for theirs, ours in zip(every, drawn, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_every_pair_is_expected_equally_often(monkeypatch: pytest.MonkeyPatch, gap: int, count: int):
    """Exact: a sequence of n pairs is cut at multiples of 1 / n, so n uniform numbers stand for all."""
    ends = Ends(batch()[0], gap)
    assert len(ends.pairs.unique()) > 2
    for pairs in ends.pairs.unique().tolist():
        expected = torch.zeros(len(ends.prefix), len(ends.suffix), dtype=torch.float64)
        for k in range(pairs):
            monkeypatch.setattr(torch, "rand", lambda *shape, at=(k + 0.5) / pairs, **how: torch.full(shape, at, **how))
            expected.index_put_(ends.drawn(count), torch.tensor(1 / pairs, dtype=torch.float64), accumulate=True)
        gaps = ends.suffix_key - ends.prefix_key[:, None]
        assert (gaps[expected > 0] >= gap).all()
        here = expected[ends.pairs == pairs]
        assert int((here > 0).sum()) == int(ends.counts[ends.pairs == pairs].sum())
        assert_close(here[here > 0], torch.full_like(here[here > 0], min(count, pairs) / pairs))


@pytest.mark.parametrize(
    ("gap", "weights"),
    [
        (1, "sequence"),
        (2, "gap"),
        pytest.param(1, "gap", marks=pytest.mark.slow),
        pytest.param(2, "sequence", marks=pytest.mark.slow),
    ],
)
def test_the_mean_of_many_draws_is_the_loss(gap: int, weights: PairWeights):
    drawn = [loss_and_gradient(5, seed, gap, weights) for seed in range(100)]
    every = loss_and_gradient(None, gap=gap, weights=weights)
    for theirs, ours in zip(every, zip(*drawn, strict=True), strict=True):
        values = torch.stack(ours)
        error = values.std(0) / len(values) ** 0.5
        assert (error > 0).any()
        assert (values.mean(0) - theirs).norm() < 3 * error.norm()


def test_the_draw_follows_the_seed():
    first, again, other = (loss_and_gradient(3, seed)[0] for seed in (1, 1, 2))
    assert first == again
    assert first != other
