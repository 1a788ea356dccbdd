"""Random pairs stand for all pairs: their loss and its gradients are unbiased."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.belief_state.belief_state_ends import Ends
from hf_mech.models.belief_state.belief_state_objective import belief_state_loss
from hf_mech.models.belief_state.belief_state_tiles import Tiles
from tests.belief_state.test_objective_conditions import batch, head


def loss_and_gradient(count: int | None, seed: int = 0, gap: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    sequences, prefixes, suffixes = batch()
    torch.manual_seed(seed)
    loss, _ = belief_state_loss(prefixes, suffixes, head_of_test, sequences, gap, pairs_per_sequence=count)
    return loss.detach(), torch.autograd.grad(loss, prefixes)[0]


head_of_test = head()


@pytest.mark.parametrize("gap", [1, 2])
def test_every_pair_is_drawn_once_if_there_are_no_more(gap: int):
    for theirs, ours in zip(loss_and_gradient(None, gap=gap), loss_and_gradient(10_000, gap=gap), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_every_pair_is_expected_equally_often(monkeypatch: pytest.MonkeyPatch, gap: int, count: int):
    """Exact: uniform numbers run through a grid fine enough for the cuts of every sequence."""
    sequences, _, _ = batch()
    ends = Ends(sequences, gap)
    steps = int(torch.lcm(ends.pairs.unique().prod(), torch.tensor(count)))
    steps = min(steps, 2_000)
    expected = torch.zeros(len(ends.prefix), len(ends.suffix), dtype=torch.float64)
    for k in range(steps):
        monkeypatch.setattr(torch, "rand", lambda *shape, k=k, **how: torch.full(shape, (k + 0.5) / steps, **how))
        prefix, suffix = ends.drawn(count)
        expected.index_put_((prefix, suffix), torch.tensor(1.0 / steps, dtype=torch.float64), accumulate=True)
    gap_of = ends.suffix_key - ends.prefix_key[:, None]
    assert (gap_of[expected > 0] >= gap).all()
    share = (ends.pairs.clamp(max=count) / ends.pairs).double()[:, None].expand_as(expected)
    assert int((expected > 0).sum()) == int(ends.counts.sum())
    assert_close(expected[expected > 0], share[expected > 0], rtol=0.02, atol=0)
