"""From the hidden vector to a structure: the 'decoder' variant of DISCOVER (Sec. 9.2.1).

A linear map takes the hidden vector h to T = W h + b, to be the TPR sum of r_i (x) f_j(i) (App. L). Role i is unbound
by its dual vector, f^_i = r_i+ T, and the nearest filler is read. The map and the embeddings of roles and fillers are
learned together: each role's cross-entropy over the fillers, with the logits -|f^_i - f_j|^2. The squared distance from
T to the TPR alone would be 0 where all embeddings are 0; a cross-entropy rewards embeddings that can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from hf_mech.programs.tensor_products.hypothesis import Hypothesis

STEPS, LEARNING_RATE = 300, 0.05
LEAST_SINGULAR_VALUE = 1e-5  # of the centred hidden vectors, relative to the largest: below it there is only rounding
DAMPING = 0.5  # of the singular values, relative to the largest: directions of little variance stay small


@dataclass(frozen=True)
class TensorProduct:
    """A fitted decomposition of hidden vectors.

    Args:
        roles: r_i, [roles, role width]; linearly independent.
        fillers: f_j of every group, [fillers of the group, filler width].
        groups: the group of each role.
        weight: W, [hidden, role width * filler width].
        offset: b, [role width * filler width].
    """

    roles: Tensor
    fillers: tuple[Tensor, ...]
    groups: tuple[int, ...]
    weight: Tensor
    offset: Tensor

    def bind(self, bindings: Tensor) -> Tensor:
        """The TPR of bindings [cells, roles]: sum of r_i (x) f_j(i), [cells, role width, filler width]."""
        bound = torch.stack([self.fillers[group][bindings[:, i]] for i, group in enumerate(self.groups)], 1)
        return torch.einsum("ir,cif->crf", self.roles, bound)

    def tensors(self, hidden: Tensor) -> Tensor:
        """T of hidden vectors [cells, hidden], [cells, role width, filler width]."""
        return (hidden.to(self.weight) @ self.weight + self.offset).unflatten(-1, (self.roles.shape[1], -1))

    def unbind(self, tensors: Tensor) -> Tensor:
        """f^_i = r_i+ T for every role, [cells, roles, filler width]."""
        return torch.einsum("ri,crf->cif", torch.linalg.pinv(self.roles), tensors)

    def distances(self, unbound: Tensor) -> list[Tensor]:
        """|f^_i - f_j|^2 for every role, [cells, fillers of its group]."""
        return [(unbound[:, i, None] - self.fillers[group]).square().sum(-1) for i, group in enumerate(self.groups)]

    def read(self, hidden: Tensor) -> Tensor:
        """The filler nearest to what each role unbinds to, [cells, roles]."""
        return torch.stack([distance.argmin(1) for distance in self.distances(self.unbind(self.tensors(hidden)))], 1)


def fit_decoder(
    hidden: Tensor, hypothesis: Hypothesis, *, filler_width: int = 16, decay: float = 1e-4, seed: int = 0
) -> TensorProduct:
    """Learns the map and the embeddings. Nothing is random but the first embeddings, which the seed draws.

    Args:
        hidden: [cells, hidden].
        hypothesis: about these cells.
        filler_width: of the fillers' embeddings, at most as many as the largest group has fillers.
        decay: the weight of the squared map in the loss.
        seed: of the first embeddings.
    """
    generator = torch.Generator().manual_seed(seed)
    scale, mean = _coordinates(hidden.double())
    inputs = ((hidden.double() - mean) @ scale).float()
    count = len(hypothesis.roles)
    width = min(filler_width, max(map(len, hypothesis.fillers)))
    roles = torch.nn.init.orthogonal_(torch.empty(count, count), generator=generator)
    fillers = [torch.randn(len(own), width, generator=generator) for own in hypothesis.fillers]
    weight, offset = torch.zeros(inputs.shape[1], count * width), torch.zeros(count * width)
    learned = [parameter.requires_grad_() for parameter in (roles, *fillers, weight, offset)]
    optimizer = torch.optim.Adam(learned, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    product = TensorProduct(roles, tuple(fillers), hypothesis.groups, weight, offset)
    with torch.enable_grad():
        for _ in range(STEPS):
            optimizer.zero_grad()
            distances = product.distances(product.unbind(product.tensors(inputs)))
            losses = [cross_entropy(-own, hypothesis.bindings[:, i]) for i, own in enumerate(distances)]
            (torch.stack(losses).sum() + decay * weight.square().sum()).backward()
            optimizer.step()
            schedule.step()
    found = scale.float() @ weight.detach()
    return TensorProduct(
        roles.detach(),
        tuple(own.detach() for own in fillers),
        hypothesis.groups,
        found,
        offset.detach() - mean.float() @ found,
    )


def _coordinates(hidden: Tensor) -> tuple[Tensor, Tensor]:
    """A map to damped principal components, [hidden, rank], and the mean of the vectors, [hidden].

    Full whitening would weigh the rare directions of sparse vectors, such as one-hot words, as much as all others: with
    more directions than cells every hypothesis then fits the fitted cells.
    """
    mean = hidden.mean(0)
    _, values, right = torch.linalg.svd(hidden - mean, full_matrices=False)
    kept = values > LEAST_SINGULAR_VALUE * values[0].clamp(min=1e-30)
    damped = torch.hypot(values[kept], DAMPING * values[0])
    return right[kept].mT / damped * len(hidden) ** 0.5, mean
