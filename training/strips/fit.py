"""What a learner hands back, and how accurate it is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hf_mech.metrics.strips_trace_accuracy import traces_right
from hf_mech.models.strips import StripsTransformer, strips_attention
from hf_mech.models.strips.strips_attention import failing


@dataclass(kw_only=True)
class Fit:
    """A trained ensemble; lists hold one entry a seed.

    Attributes:
        model: the ensemble.
        steps, seconds: for how long it was trained; of the two-part code: sweeps.
        settled_at: the step at which the seed settled, None if it did not.
        redraws: how often a head was drawn anew.
        code_bits: the length of the two-part code, None for gradient descent.
    """

    model: StripsTransformer
    steps: int
    seconds: float
    settled_at: list[int | None]
    redraws: list[int]
    code_bits: list[float] | None = None


@torch.no_grad()
def trace_accuracy(
    theta: Tensor, input_ids: Tensor, labels: Tensor, batch_size: int = 1_000, *, failures: bool = False
) -> Tensor:
    """The metric `strips_trace_accuracy` of every member, by the binarized theta (Eq. 19), [members].

    With `failures` an action labelled 1 has failed and changes nothing; else every action counts as done.
    """
    symbols = (theta.detach().cpu() >= 0.5).float()
    right = torch.zeros(len(symbols), dtype=torch.float64)
    for ids, target in zip(input_ids.split(batch_size), labels.split(batch_size), strict=True):
        ids = torch.where(target >= 0, ids, -1)
        _, scores = strips_attention(*(failing(symbols, ids, target == 1) if failures else (symbols, ids)))
        right += torch.as_tensor(traces_right(scores >= 0.5, target)).sum(0)
    return right / len(input_ids)
