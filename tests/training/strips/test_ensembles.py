"""Several seeds in one tensor are as many runs: no member knows of the others."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_mech.metrics import load
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig, strips_attention, strips_focal_loss
from hf_mech.planning.pddl import load_bundled
from training.strips.fit import trace_accuracy
from training.strips.progress import EnsembleProgress

SIMPLE = load_bundled("simple").domain
SEEDS = (0, 1, 2)


def traces(count: int, longest: int = 8) -> tuple[Tensor, Tensor]:
    """Random traces of `simple`, padded: ids and labels, [count, longest]."""
    random = Random(0)
    ids, labels = torch.full((count, longest), 3), torch.full((count, longest), -100)
    for row in range(count):
        trace: list[Any] = random.choices(range(3), k=random.randint(2, longest))
        ids[row, : len(trace)], labels[row, : len(trace)] = torch.tensor(trace), torch.tensor(SIMPLE.labels(trace))
    return ids, labels


def trained(seeds: tuple[int, ...], steps: int = 200) -> tuple[StripsTransformer, EnsembleProgress]:
    """The loop of `train_cell`, in float64, so that rounding does not tell the runs apart."""
    ids, labels = traces(40)
    config = StripsTransformerConfig(actions=list(SIMPLE.action_names), num_propositions=3, ensemble=len(seeds))
    model = StripsTransformer(config).double().seed_members(seeds).train()
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.02, betas=(0.9, 0.99))
    progress = EnsembleProgress.of(seeds)
    while progress.step < steps:
        part = slice(8 * (progress.step % 5), 8 * (progress.step % 5) + 8)
        model(ids[part], labels=labels[part]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        progress.step += 1
        if progress.step % 40 == 0:
            progress.update(model.theta, trace_accuracy(model.theta, ids, labels), None)
            progress.redraw(model.theta, optimizer, 80)
    return model, progress


@pytest.fixture(scope="module")
def together() -> tuple[StripsTransformer, EnsembleProgress]:
    return trained(SEEDS)


def test_an_ensemble_is_its_members_alone(together: tuple[StripsTransformer, EnsembleProgress]):
    model, progress = together
    place = 1
    assert progress.redraws[place]
    alone, own = trained(SEEDS[place : place + 1])
    assert_close(model.theta[place], alone.theta[0], rtol=0, atol=1e-10)
    for name in ("redraws", "settled_at", "changed_at", "best_at", "best_accuracy"):
        assert getattr(own, name)[0] == getattr(progress, name)[place], name
    assert own.symbols is not None
    assert own.best_theta is not None
    assert progress.symbols is not None
    assert progress.best_theta is not None
    assert torch.equal(own.symbols[0], progress.symbols[place])
    assert_close(progress.best_theta[place], own.best_theta[0], rtol=0, atol=1e-10)


def test_a_member_knows_neither_the_others_nor_its_place(together: tuple[StripsTransformer, EnsembleProgress]):
    first, _ = together
    second, _ = trained((1, 7, 8))
    assert_close(first.theta[1], second.theta[0], rtol=0, atol=1e-10)
    assert not torch.allclose(first.theta[0], second.theta[1])


def test_a_member_goes_on_after_it_was_perfect_first_and_keeps_the_latest_perfect_theta():
    theta, progress = torch.zeros(1, 2, 3, 3), EnsembleProgress.of([0])
    for step, accuracy, settled in ((100, 1.0, False), (200, 1.0, False), (300, 0.9, True)):
        progress.step = step
        theta += 0.1
        assert progress.update(theta, torch.tensor([accuracy]), None, extra_steps=200) is settled
    assert progress.best_theta is not None
    assert_close(progress.best_theta, torch.full_like(theta, 0.2))


def test_member_gives_that_member(together: tuple[StripsTransformer, EnsembleProgress]):
    model, _ = together
    ids, _ = traces(10)
    with torch.no_grad():
        whole = model.eval()(ids)
        for index in range(len(SEEDS)):
            single = model.member(index)
            assert_close(single(ids).inapplicability[..., 0], whole.inapplicability[..., index])
            assert single.to_domain() == model.to_domain(index)


@pytest.mark.parametrize("sizes", [(8, 8), (1,) * 16, (3, 5, 7, 1)])
def test_accumulated_parts_are_the_whole_batch(sizes: tuple[int, ...]):
    ids, labels = traces(16)
    ids = torch.where(ids == 3, -1, ids)

    def loss_and_gradient(parts: list[slice]) -> tuple[Tensor, Tensor]:
        theta = torch.rand(3, 4, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        theta.requires_grad_()
        total = torch.zeros(3, dtype=torch.float64)
        for part in parts:
            loss = strips_focal_loss(strips_attention(theta, ids[part])[1], labels[part], num_traces=16)
            loss.sum().backward()
            total += loss.detach()
        assert theta.grad is not None
        return total, theta.grad

    ends = torch.tensor(sizes).cumsum(0).tolist()
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    for ours, whole in zip(loss_and_gradient(parts), loss_and_gradient([slice(0, 16)]), strict=True):
        assert_close(ours, whole, rtol=1e-12, atol=1e-14)
    assert_close(
        strips_focal_loss(torch.full((16, 8, 1), 0.3), labels),
        strips_focal_loss(torch.full((16, 8, 1), 0.3), labels, num_traces=torch.tensor(16)),
    )


@torch.no_grad()
def test_trace_accuracy_is_the_metrics():
    ids, labels = traces(60)
    hidden = StripsTransformer.from_domain(SIMPLE).theta
    theta = torch.cat([hidden, hidden, torch.rand(4, 3, 3, 3)])
    theta[1, 0, 0, 0] = 1 - theta[1, 0, 0, 0]
    found = trace_accuracy(theta, ids, labels, batch_size=13)
    assert found[0] == 1
    assert len(set(found.tolist())) > 2
    for member, accuracy in enumerate(found.tolist()):
        config = StripsTransformerConfig(actions=list(SIMPLE.action_names), num_propositions=3)
        model = StripsTransformer(config).eval()
        model.theta.data.copy_(theta[member : member + 1])
        predicted = (model.binarize()(ids).inapplicability[..., 0] >= 0.5).long()
        metric = load("strips_trace_accuracy")
        expected = metric.compute(predictions=predicted.tolist(), references=labels.tolist())
        assert accuracy == pytest.approx(expected["trace_accuracy"], abs=1e-6)
