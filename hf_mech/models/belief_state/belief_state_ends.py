"""The tokens at which prefixes end and suffixes begin, and the number of their pairs, without a list of the pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .belief_state_pairs import Sequences


class Ends:
    """The last tokens of prefixes and the first tokens of suffixes that are in a pair, in the order of their sequences.

    A key orders tokens by row, sequence and position; the keys of a pair differ by its gap. With them, all that is
    known of O(length^2) pairs comes from sorted lists of O(length) tokens.

    Attributes:
        prefix, suffix: the tokens' places in the flattened batch, [prefixes] and [suffixes].
        prefix_key, suffix_key: their keys.
        apart: False at suffixes that pair only with the prefix that meets them, [suffixes].
        counts: the number of pairs of each prefix, [prefixes].
        pairs: the number of pairs of its sequence, [prefixes].
        before: the number of trained tokens in each prefix, [prefixes].
        behind: the number of trained tokens in each suffix, but for the last token of its sequence, [suffixes].
        trained: the number of trained tokens of its sequence, [prefixes].
        tokens: the number of trained tokens of all sequences that have a pair, [].
        least: the least gap.
    """

    def __init__(self, sequences: Sequences, least: int) -> None:
        number, trained = sequences.sequence, sequences.trained & (sequences.sequence >= 0)
        batch, length = number.shape
        self.least, self.stride = least, length + 2
        places = torch.arange(length, device=number.device)
        rows = torch.arange(batch, device=number.device)[:, None] * (number.max() + 1)
        self._keys = (rows + number) * self.stride + places

        same = (number[:, 1:] == number[:, :-1]) & (number[:, 1:] >= 0)
        prefix, prefix_key = self._sorted(functional.pad(same & trained[:, 1:], (0, 1)))
        apart = functional.pad(same & trained[:, :-1], (1, 0))
        meets = functional.pad(same & trained[:, 1:], (1, 0)) if least == 1 else torch.zeros_like(apart)

        _, self._apart_key = self._sorted(apart)
        self._first_apart = torch.searchsorted(self._apart_key, prefix_key + 2)
        counts = torch.searchsorted(self._apart_key, self.span(prefix_key)[1]) - self._first_apart
        counts = counts + 1 if least == 1 else counts
        used = counts > 0
        self.prefix, self.prefix_key, self.counts = prefix[used], prefix_key[used], counts[used]
        self._first_apart = self._first_apart[used]

        suffix, suffix_key = self._sorted(apart | meets)
        earlier = torch.searchsorted(self.prefix_key, suffix_key - 2, right=True)
        used = (earlier > torch.searchsorted(self.prefix_key, self.span(suffix_key)[0])) | meets.flatten()[suffix]
        self.suffix, self.suffix_key = suffix[used], suffix_key[used]
        self.apart = apart.flatten()[self.suffix]

        counted = self._apart_key - 1  # trained tokens, but for the last one of a sequence
        self.before = torch.searchsorted(counted, self.prefix_key, right=True)
        self.before -= torch.searchsorted(counted, self.span(self.prefix_key)[0])
        self.behind = torch.searchsorted(counted, self.span(self.suffix_key)[1])
        self.behind -= torch.searchsorted(counted, self.suffix_key)

        _, trained_key = self._sorted(trained)
        self.trained = self._within(self.prefix_key, trained_key)
        self.tokens = (self._within(trained_key, self.prefix_key) > 0).sum()
        self._pairs_before = functional.pad(self.counts.cumsum(0), (1, 0))
        begin, end = (torch.searchsorted(self.prefix_key, key) for key in self.span(self.prefix_key))
        self.first_pair = self._pairs_before[begin]
        self.pairs = self._pairs_before[end] - self.first_pair

    def span(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """The least key of a token's sequence and the next one's."""
        begin = key - key % self.stride
        return begin, begin + self.stride

    def pair(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """The indices of a pair's prefix and suffix, from its number; prefixes, then suffixes, in their order."""
        prefix = torch.searchsorted(self._pairs_before[1:], number, right=True)
        within = number - self._pairs_before[prefix] - int(self.least == 1)  # -1: the pair that meets
        meeting = self.prefix_key[prefix] + 1
        apart = functional.pad(self._apart_key, (0, 1))[(self._first_apart[prefix] + within).clamp(min=0)]
        return prefix, torch.searchsorted(self.suffix_key, torch.where(within < 0, meeting, apart))

    def drawn(self, count: int) -> tuple[Tensor, Tensor]:
        """The indices of prefixes and suffixes of random pairs: `count` of each sequence, or all if it has fewer.

        A sequence's pairs in their order are cut into `count` equal parts, and one pair is drawn from each. Every pair
        is expected count / pairs times, so losses with the weight pairs / count are unbiased.
        """
        begin = torch.searchsorted(self.prefix_key, self.span(self.prefix_key)[0])
        heads = begin.unique()  # a prefix of each sequence
        pairs = self.pairs[heads]
        drawn = pairs.clamp(max=count)
        sequence = torch.repeat_interleave(drawn)
        part = torch.arange(len(sequence), device=begin.device) - (drawn.cumsum(0) - drawn)[sequence]
        place = part + torch.rand(len(sequence), device=begin.device, dtype=torch.float64)
        number = (place * (pairs / drawn.double())[sequence]).long().minimum(pairs[sequence] - 1)
        return self.pair(self.first_pair[heads][sequence] + number)

    def _sorted(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        places = mask.flatten().nonzero()[:, 0]
        keys, order = self._keys.flatten()[places].sort()
        return places[order], keys

    def _within(self, key: Tensor, keys: Tensor) -> Tensor:
        """How many of the sorted `keys` belong to the sequence of each `key`."""
        begin, end = self.span(key)
        return torch.searchsorted(keys, end) - torch.searchsorted(keys, begin)
