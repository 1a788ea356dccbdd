"""Several optimizers as one: the same steps, the same state, one schedule."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Muon
from torch.optim.lr_scheduler import LambdaLR

from training.engine.optimizers import MuonOfParts, Together, orthogonalized


def layers(seed: int = 0) -> nn.ModuleList:
    torch.manual_seed(seed)
    return nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 2)])


def optimizer_of(parts: nn.ModuleList) -> Together:
    return Together(SGD(parts[0].parameters(), lr=0.1, momentum=0.9), AdamW(parts[1].parameters(), lr=0.01))


def steps(parts: nn.ModuleList, optimizers: list[torch.optim.Optimizer], first: int, last: int) -> None:
    for step in range(first, last):
        torch.manual_seed(step)
        loss: Tensor = parts[1](parts[0](torch.randn(5, 3)).tanh()).square().mean()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def test_the_same_steps_as_the_parts() -> None:
    one, two = layers(), layers()
    steps(one, [optimizer_of(one)], 0, 5)
    steps(two, [SGD(two[0].parameters(), lr=0.1, momentum=0.9), AdamW(two[1].parameters(), lr=0.01)], 0, 5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), layers().parameters(), strict=True))


def test_a_schedule_and_a_saved_state_reach_every_part() -> None:
    straight, resumed = layers(), layers()
    whole = optimizer_of(straight)
    schedule = LambdaLR(whole, lambda step: 0.5**step)
    steps(straight, [whole], 0, 3)
    schedule.step()
    assert [group["lr"] for part in whole.optimizers for group in part.param_groups] == [0.05, 0.005]
    resumed.load_state_dict(straight.state_dict())
    again = optimizer_of(resumed)
    later = LambdaLR(again, lambda step: 0.5**step)
    again.load_state_dict(deepcopy(whole.state_dict()))
    later.load_state_dict(schedule.state_dict())
    for parts, optimizer, plan in ((straight, whole, schedule), (resumed, again, later)):
        steps(parts, [optimizer], 3, 5)
        plan.step()
        steps(parts, [optimizer], 5, 7)
        assert [group["lr"] for part in optimizer.optimizers for group in part.param_groups] == [0.025, 0.0025]
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), resumed.parameters(), strict=True))


def test_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match=r"closure.*step\(\) without one"):
        optimizer_of(layers()).step(lambda: 0.0)


def test_parts_of_a_matrix_take_the_steps_of_matrices_of_their_own() -> None:
    torch.manual_seed(0)
    whole, other = nn.Parameter(torch.randn(4, 12)), nn.Parameter(torch.randn(4, 3))
    apart = [nn.Parameter(part.clone()) for part in (*whole.detach().chunk(3, 1), other.detach())]
    ours = MuonOfParts([(whole, 3, 0.1), (other, 1, 0.2)], weight_decay=0.01)
    groups = [{"params": apart[:3], "lr": 0.1}, {"params": apart[3:], "lr": 0.2}]
    theirs = Muon(groups, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    inputs = torch.randn(4, 5, 4)
    for given in inputs:
        for matrices, optimizer in (([whole, other], ours), (apart, theirs)):
            made = torch.cat([given @ matrix for matrix in matrices], 1)
            made.sin().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            assert all(matrix.grad is None for matrix in matrices)
    # torch orthogonalises in bfloat16, which has eight bits; four steps move an entry by up to 0.3.
    torch.testing.assert_close(whole, torch.cat(apart[:3], 1), rtol=0, atol=0.01)
    torch.testing.assert_close(other, apart[3], rtol=0, atol=0.01)


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 7, 3), (1, 3, 9)])
def test_orthogonalized_matrices_have_singular_values_near_one(shape: tuple[int, ...]) -> None:
    group = Muon([nn.Parameter(torch.zeros(2, 2))]).param_groups[0]
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = orthogonalized(matrices, group)
    assert found.shape == matrices.shape
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.5
    assert values.max() < 1.3
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    assert ((left @ right) * found).sum((1, 2)).min() > 0.8 * min(shape[1:])  # near the nearest orthogonal one
    alone = torch.cat([orthogonalized(matrix[None], group) for matrix in matrices])
    torch.testing.assert_close(found, alone)
