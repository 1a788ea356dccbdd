"""The loss: cross-entropy of every component of every real step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def padded_logits(logits: Sequence[Tensor]) -> Tensor:
    """The components' logits in one tensor, -inf where a component has fewer values than the largest.

    Args:
        logits: for each component [..., values].

    Returns:
        [..., components, most values]. `argmax(-1)` and `softmax(-1)` are those of each component.
    """
    most = max(part.shape[-1] for part in logits)
    return torch.stack([functional.pad(part, (0, most - part.shape[-1]), value=float("-inf")) for part in logits], -2)


def component_loss(
    logits: Tensor, labels: Tensor, reduction: str = "mean", num_items: int | Tensor | None = None
) -> Tensor:
    """Cross-entropy over components and steps; those labelled -100 do not count.

    Args:
        logits: [batch, steps, components, values], -inf at values that a component does not have.
        labels: [batch, steps, components].
        reduction: `"mean"` over components, or their `"sum"`; over steps it is a mean.
        num_items: the number of labelled components in all batches of an accumulated step. The parts' losses then sum
            exactly to that step's loss.
    """
    exact = logits if logits.dtype == torch.float64 else logits.float()
    total = functional.cross_entropy(exact.flatten(0, 2), labels.flatten(), ignore_index=-100, reduction="sum")
    items = (labels != -100).sum() if num_items is None else num_items
    return total / items * (logits.shape[-2] if reduction == "sum" else 1)
