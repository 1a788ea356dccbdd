"""A block of tiles: its pairs' first layer, its losses, and their gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Block:
    """The pairs of some tiles of `side` neighbouring prefixes and suffixes.

    A row is a pair, with one label of each head. Without suffix states, all suffixes of a tile have the same logits; a
    row is a prefix then, with a label for each of them.

    Attributes:
        prefix, suffix: the strips of prefixes and of suffixes of each tile, [tiles].
        side: of a tile.
        places: the rows that are pairs among all places of the tiles, [rows]; None if rows are all places.
        nexts, prevs: the labels, [rows, labels].
        weights: of each label, 0 where there is no pair, [rows, labels].
    """

    prefix: Tensor
    suffix: Tensor
    side: int
    places: Tensor | None
    nexts: Tensor
    prevs: Tensor
    weights: Tensor

    def sums(self, first: Tensor, second: Tensor | None) -> Tensor:
        """The first layer's sums, [rows, width], from its parts at all strips, [strips, side, width]."""
        if second is None:
            return first[self.prefix].flatten(0, 1)
        sums = (first[self.prefix][:, :, None] + second[self.suffix][:, None]).flatten(0, 2)
        return sums if self.places is None else sums[self.places]

    def add_gradients(self, gradients: Tensor, first: Tensor | None, second: Tensor | None) -> None:
        """Adds the gradients of the sums, [rows, width], to those of the first layer's parts; None: not wanted."""
        tiles, width = len(self.prefix), gradients.shape[-1]
        if self.places is not None:
            empty = gradients.new_zeros(tiles * self.side**2, width)
            gradients = empty.index_copy_(0, self.places, gradients)
        gradients = gradients.view(tiles, self.side, -1, width)
        if first is not None:
            first.index_add_(0, self.prefix, gradients.sum(2, dtype=first.dtype))
        if second is not None:
            second.index_add_(0, self.suffix, gradients.sum(1, dtype=second.dtype))

    def losses(self, logits: list[Tensor], unit: Tensor, gradients: bool) -> tuple[Tensor, list[Tensor]]:
        """The weighted sum of the losses (Eq. 2) in units, and its gradients of the logits: softmax less the labels.

        Args:
            logits: the heads' in order, [rows, heads, vocabulary], in one tensor or in two.
            unit: the weight that counts as 1, [], in the precision of the loss.
            gradients: False for the loss alone.
        """
        labels = [self.nexts, self.prevs]
        weights = self.weights.to(unit.dtype) / unit / sum(scores.shape[1] for scores in logits)
        total = torch.zeros_like(unit)
        found = []
        for scores in logits:
            heads = scores.shape[1]
            picks = torch.stack(labels[:heads], 1).flatten(0, 1)  # [rows x heads, labels]
            shares = weights.repeat_interleave(heads, 0)
            labels = labels[heads:]
            flat = torch.log_softmax(scores.detach().flatten(0, 1), -1, dtype=unit.dtype)
            total -= (flat.gather(1, picks) * shares).sum()
            if gradients:
                flat.exp_().mul_(shares.sum(1, keepdim=True)).scatter_add_(1, picks, -shares)
                found.append(flat.view_as(scores).to(scores.dtype))
        return total, found
