"""The pairs of a prefix and a suffix on which a batch trains (Section 2.1, Appendix E)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sequences:
    """Rows of tokens, each with its end token; a row may hold several sequences, one after the other.

    Attributes:
        tokens: [batch, length]; the end token stands behind every sequence and is its empty suffix.
        trained: True at tokens whose prediction counts, [batch, length].
        sequence: the number of the sequence in its row, [batch, length]; -1 at padding.
        end_token: the id of the end token.
    """

    tokens: Tensor
    trained: Tensor
    sequence: Tensor
    end_token: int

    @property
    def first_prefix(self) -> int:
        """The first column whose token ends a prefix of a pair, in any row."""
        trained = self.trained.any(0)
        return max(int(trained.long().argmax()) - 1, 0)

    def after(self, begin: int) -> Sequences:
        """The columns from `begin` on. A suffix's state depends on none before it."""
        return Sequences(self.tokens[:, begin:], self.trained[:, begin:], self.sequence[:, begin:], self.end_token)

    def pairs(self, gap: int) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs whose suffix begins `gap` tokens after the last token of the prefix.

        The pair (i, j), j = i + gap, has the labels x[i + 1] and x[j - 1] (Eq. 2). It counts if both are trained.
        With a gap of 1 nothing is between them, and both labels are the end token.

        Returns:
            Whether the pair counts, the label of the next and that of the previous token, each [batch, length - gap],
            by the prefix's last token.
        """
        count = self.tokens.shape[1] - gap
        same = (self.sequence[:, gap:] == self.sequence[:, :count]) & (self.sequence[:, gap:] >= 0)
        if gap == 1:
            ends = torch.full_like(self.tokens[:, 1:], self.end_token)
            return same & self.trained[:, 1:], ends, ends
        counts = same & self.trained[:, 1 : count + 1] & self.trained[:, gap - 1 : -1]
        return counts, self.tokens[:, 1 : count + 1], self.tokens[:, gap - 1 : -1]

    def gaps(self, least: int) -> range:
        """All gaps of the batch, the least first."""
        return range(least, self.tokens.shape[1])

    def weights(self, least: int) -> Tensor:
        """The weight of each pair of a position's sequence, [batch, length].

        A sequence weighs as much as it has trained tokens, as in any language model, and divides that among its pairs.
        """
        size = int(self.sequence.max()) + 1
        shape = (len(self.tokens), size + 1)
        index = self.sequence.clamp(min=-1) + 1  # 0 is padding
        pairs = torch.zeros(shape, device=self.tokens.device, dtype=torch.float64)
        for gap in self.gaps(least):
            counts, _, _ = self.pairs(gap)
            pairs.scatter_add_(1, index[:, : counts.shape[1]], counts.to(pairs.dtype))
        tokens = torch.zeros_like(pairs).scatter_add_(1, index, self.trained.to(pairs.dtype))
        return (tokens / pairs.clamp(min=1)).gather(1, index) * (pairs.gather(1, index) > 0)
