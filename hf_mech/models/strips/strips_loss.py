"""The focal loss of the STRIPS Transformer (Eq. 20-22)."""

from __future__ import annotations

import torch
from torch import Tensor


def strips_focal_loss(
    inapplicability: Tensor,
    labels: Tensor,
    alpha: float = 0.9,
    gamma: float = 3.0,
    num_traces: int | Tensor | None = None,
) -> Tensor:
    """Eq. 20-22 for every ensemble member.

    A positive trace is a row of zeros; a negative one has a 1 at its inapplicable action (the paper trains on
    negatives with one, at the end; a row may hold any number).

    Args:
        inapplicability: y(i) of Eq. 17, [batch, length, members].
        labels: 1 where the action is inapplicable, 0 where it is applicable, -100 where there is no action,
            [batch, length].
        alpha: weight of the inapplicable class.
        gamma: focusing exponent.
        num_traces: |T| of Eq. 20; by default the size of this batch. For gradient accumulation, give the number of
            traces of the whole accumulated batch; the parts' losses then sum exactly to that batch's loss.

    Returns:
        [members]; the sum over members trains each member as if alone.
    """
    y = inapplicability.float() if inapplicability.dtype.itemsize < 4 else inapplicability
    target = labels.unsqueeze(-1)
    wrong = torch.where(target == 1, 1 - y, y)  # how far the prediction is from its label
    weight = (target == 1).to(y.dtype) * alpha + (target == 0).to(y.dtype) * (1 - alpha)
    # A clamped theta reaches wrong = 1 exactly, where log(1 - wrong) has no value.
    right = (1 - wrong).clamp(min=torch.finfo(y.dtype).eps)
    losses = -weight * wrong.pow(gamma) * right.log()
    lengths = (labels >= 0).sum(1).clamp(min=1).to(y.dtype)  # |tau|
    per_trace = losses.sum(1) / lengths.unsqueeze(-1)
    return per_trace.sum(0) / (labels.shape[0] if num_traces is None else num_traces)
