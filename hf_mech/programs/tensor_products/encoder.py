"""From a structure to the hidden vector: each binding's contribution, by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hf_mech.programs.tensor_products.hypothesis import Filler, Hypothesis


@dataclass(frozen=True)
class Contributions:
    """The part of hidden vectors that a hypothesis explains: h = offset + sum over roles of e(r:f).

    A TPR through any linear map, h = W (sum of r (x) f), is of this form with e(r:f) = W (r (x) f). The form has no
    constraint on the e(r:f), so no embedding of roles and fillers explains more of the fitted cells.

    Args:
        hypothesis: its roles and fillers.
        vectors: e(r:f) of every binding, [bindings, hidden].
        offset: [hidden].
    """

    hypothesis: Hypothesis
    vectors: Tensor
    offset: Tensor

    def reconstruct(self, hypothesis: Hypothesis) -> Tensor:
        """The hidden vectors of cells with these bindings, [cells, hidden]."""
        return self.offset + hypothesis.one_hot() @ self.vectors

    def replace(self, hidden: Tensor, role: str, old: Filler, new: Filler) -> Tensor:
        """Hidden vectors with another filler bound to a role, h - e(r:old) + e(r:new) (Sec. 9.2.1).

        Args:
            hidden: vectors whose `role` is bound to `old`, [cells, hidden].
        """
        index = self.hypothesis.roles.index(role)
        fillers = self.hypothesis.fillers[self.hypothesis.groups[index]]
        first = self.hypothesis.offsets[index]
        change = self.vectors[first + fillers.index(new)] - self.vectors[first + fillers.index(old)]
        return hidden + change.to(hidden)


def fit_encoder(hidden: Tensor, hypothesis: Hypothesis) -> Contributions:
    """The contributions with the least squared error; of several, those of the least norm.

    Args:
        hidden: [cells, hidden].
        hypothesis: about these cells.
    """
    offset = hidden.double().mean(0)
    bound = hypothesis.one_hot()
    # The columns of a role sum to 1, so the mean of the cells is in their span: the minimum-norm solution needs gelsd.
    vectors = torch.linalg.lstsq(bound, hidden.double() - offset, driver="gelsd").solution
    return Contributions(hypothesis, vectors, offset)


def variance_explained(hidden: Tensor, reconstructed: Tensor, mean: Tensor) -> float:
    """R^2: 1 less the squared error over the squared distance from `mean` [hidden], over all cells and neurons."""
    error = (hidden - reconstructed).square().sum()
    return float(1 - error / (hidden - mean).square().sum())
