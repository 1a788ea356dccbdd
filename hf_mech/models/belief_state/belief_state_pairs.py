"""The pairs of a prefix and a suffix on which a batch trains (Section 2.1, Appendix E)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

#: How pairs weigh in the loss: see `Sequences.weights`.
PairWeights = Literal["sequence", "gap"]


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

    def first_of(self, states: Tensor) -> Tensor:
        """Of states [batch, length, size], those of each row's first token, [batch, 1, size]."""
        first = (self.sequence >= 0).long().argmax(1)
        return states[torch.arange(len(states), device=states.device), first][:, None]

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

    def weights(self, least: int, kind: PairWeights = "sequence") -> Tensor:
        """The weight of each pair in the loss, 0 where there is no pair, [batch, length, length].

        - "sequence": a sequence weighs as much as it has trained tokens, and divides that among its pairs, as in Eq. 2
          where all sequences are of one length.
        - "gap": 1 / (1 + the trained tokens in the prefix + those in the suffix, but for its last token). The weight
          depends on nothing but the prefix and the suffix, so the optimum is Eq. 3 and 4 for sequences of any lengths.
          The pairs with the same number of trained tokens between them weigh 1 together.

        Args:
            least: the least gap.
            kind: "sequence" or "gap".

        Returns:
            By the prefix's last token and the suffix's first one.
        """
        pairs = torch.zeros(*self.tokens.shape, self.tokens.shape[1], dtype=torch.float64, device=self.tokens.device)
        for gap in self.gaps(least):
            pairs.diagonal(gap, 1, 2).copy_(self.pairs(gap)[0])
        same = (self.sequence[:, :, None] == self.sequence[:, None]).double()
        if kind == "sequence":
            tokens, number = ((same @ part.double()[..., None]) for part in (self.trained, pairs.sum(2)))
            return pairs * tokens / number.clamp(min=1)
        last = functional.pad(self.sequence[:, 1:] != self.sequence[:, :-1], (0, 1), value=True)
        counted = (self.trained & ~last).double()[..., None]
        prefix, suffix = same.tril() @ counted, same.triu() @ counted  # [batch, length, 1]
        return pairs / (1 + prefix + suffix.mT)
