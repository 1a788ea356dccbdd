"""The loss: every labelled component of every real step, exact in parts."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from hf_mech.models.msat import MSATError

from .models import SIZES, model, steps


def batch_with_labels() -> dict[str, torch.Tensor]:
    """Three rows of four steps: one padded, some components without a label."""
    batch = steps(3, 4)
    batch["attention_mask"] = torch.ones(3, 4, dtype=torch.long)
    batch["attention_mask"][1, 2:] = 0
    batch["labels"] = batch["actions"].clone()
    batch["labels"][0, 1, 2] = -100
    return batch


def test_the_loss_is_the_mean_negative_log_likelihood():
    trained, batch = model(), batch_with_labels()
    outputs = trained(**batch)
    losses = []
    for row in range(3):
        for step in range(4):
            for component, size in enumerate(SIZES):
                label = int(batch["labels"][row, step, component])
                if batch["attention_mask"][row, step] and label != -100:
                    odds = outputs.logits[row, step, component, :size].softmax(-1)
                    losses.append(-odds[label].log())
    assert len(losses) == 3 * 10 - 1  # padding is never trained, whatever its label
    expected = torch.stack(losses).mean()
    assert_close(outputs.loss, expected)


def test_parts_add_up_to_the_whole():
    trained, batch = model(), batch_with_labels()
    whole = trained(**batch).loss
    parts = [
        trained(**{name: tensor[row : row + 1] for name, tensor in batch.items()}, num_items_in_batch=29).loss
        for row in range(3)
    ]
    assert_close(sum(parts), whole)


def test_logits_that_no_component_has_are_finite_and_never_chosen():
    logits = model()(**steps(2, 3)).logits
    assert logits.shape == (2, 3, 3, 4)
    for component, size in enumerate(SIZES):
        assert logits[..., component, :size].isfinite().all()
        assert (logits[..., component, size:] == torch.finfo(torch.float64).min).all()
        own = logits[..., component, :size].softmax(-1)
        assert torch.equal(logits[..., component, :].softmax(-1), functional.pad(own, (0, 4 - size)))
    assert (logits.argmax(-1) < torch.tensor(SIZES)).all()


def test_nothing_to_train_is_refused_unless_it_is_a_part():
    trained, batch = model(), steps(1, 2)
    labels = torch.full((1, 2, 3), -100)
    with pytest.raises(MSATError, match="nothing to train"):
        trained(**batch, labels=labels)
    assert trained(**batch, labels=labels, num_items_in_batch=6).loss == 0


def test_what_stands_at_padding_changes_nothing():
    trained, batch = model(), batch_with_labels()
    expected = trained(**batch)
    wild = {name: tensor.clone() for name, tensor in batch.items()}
    for name, value in (("states", torch.nan), ("returns_to_go", torch.inf), ("timesteps", -5), ("actions", -100)):
        wild[name][1, 2:] = value
    outputs = trained(**wild)
    assert torch.equal(outputs.loss, expected.loss)
    outputs.loss.backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in trained.parameters())
