"""The pairs of a prefix and a suffix on which a batch trains, without a list of all pairs (Section 2.1, Appendix E).

`Sequences` says of each place whether it is a pair, its labels and its weight. The rest finds the same pairs fast:
`Ends` sorts the O(length) tokens that can be in a pair, `Tiles` lays neighbouring prefixes and suffixes side by side,
and `Block` is the part of a batch whose logits are in memory at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
        r"""The weight $w(i, j)$ of each pair in the loss, 0 where there is no pair, [batch, length, length].

        The loss is $\sum w(i, j)\, \ell(i, j) / N$ over the pairs of all sequences. $\ell$ is the mean of the pair's
        two cross-entropies, and $N$ is the number of trained tokens in all sequences that have a pair. A sequence of
        $n$ trained tokens has $p$ pairs. Its pair of a prefix with $a$ trained tokens and a suffix with $c$ of them,
        without the sequence's last token, weighs

        - "sequence": $w(i, j) = n / p$. The loss is the mean of $\ell$ over each sequence's pairs, and then the mean
          of these means, in which a sequence weighs as its $n$ trained tokens. It is no mean over all pairs of the
          batch, unless all sequences have the same $n$; then it is Eq. 2.
        - "gap": $w(i, j) = 1 / (1 + a + c)$. The weight depends on nothing but the prefix and the suffix, so the
          optimum is Eq. 3 and 4 for sequences of any lengths. The pairs of a sequence with the same number of trained
          tokens between them weigh 1 together.

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


class Ends:
    """The last tokens of prefixes and the first tokens of suffixes that are in a pair, in the order of their sequences.

    A token's key orders it by row, sequence and position: the keys of a sequence fill a span of their own, and those of
    a pair differ by its gap. So whatever is asked of O(length^2) pairs is counted in sorted lists of O(length) keys.

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
    """

    def __init__(self, sequences: Sequences, least: int) -> None:
        number, trained = sequences.sequence, sequences.trained & (sequences.sequence >= 0)
        batch, length = number.shape
        self.least, self.stride = least, length + 2
        rows = torch.arange(batch, device=number.device)[:, None] * (number.max() + 1)
        keys = (rows + number) * self.stride + torch.arange(length, device=number.device)

        def listed(mask: Tensor) -> tuple[Tensor, Tensor]:
            """Places and keys of the marked tokens, in the order of their keys."""
            places = mask.flatten().nonzero()[:, 0]
            found, order = keys.flatten()[places].sort()
            return places[order], found

        # A prefix's label stands behind it, a suffix's label before it. Where they meet, the end token is both labels.
        same = (number[:, 1:] == number[:, :-1]) & (number[:, 1:] >= 0)
        prefix, prefix_key = listed(functional.pad(same & trained[:, 1:], (0, 1)))
        apart = functional.pad(same & trained[:, :-1], (1, 0))
        meets = functional.pad(same & trained[:, 1:], (1, 0)) if least == 1 else torch.zeros_like(apart)
        suffix, suffix_key = listed(apart | meets)
        _, self._apart_key = listed(apart)

        counts = _between(self._apart_key, prefix_key + 2, self.span(prefix_key)[1]) + int(least == 1)
        used = counts > 0
        self.prefix, self.prefix_key, self.counts = prefix[used], prefix_key[used], counts[used]
        earlier = _between(self.prefix_key, self.span(suffix_key)[0], suffix_key - 1)
        used = (earlier > 0) | meets.flatten()[suffix]
        self.suffix, self.suffix_key = suffix[used], suffix_key[used]
        self.apart = apart.flatten()[self.suffix]

        counted = self._apart_key - 1  # trained tokens, but for the last one of a sequence
        self.before = _between(counted, self.span(self.prefix_key)[0], self.prefix_key + 1)
        self.behind = _between(counted, self.suffix_key, self.span(self.suffix_key)[1])
        _, trained_key = listed(trained)
        self.trained = _between(trained_key, *self.span(self.prefix_key))
        self.tokens = (_between(self.prefix_key, *self.span(trained_key)) > 0).sum()

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
        first = torch.searchsorted(self._apart_key, self.prefix_key[prefix] + 2)
        apart = functional.pad(self._apart_key, (0, 1))[(first + within).clamp(min=0)]
        return prefix, torch.searchsorted(self.suffix_key, torch.where(within < 0, self.prefix_key[prefix] + 1, apart))

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


def _between(keys: Tensor, least: Tensor, end: Tensor) -> Tensor:
    """How many of the sorted keys are at least `least` and less than `end`, element by element."""
    return torch.searchsorted(keys, end) - torch.searchsorted(keys, least)


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


SIDE = 8  # of a tile; the larger, the fewer reads of a state, but the more empty places on the diagonal
CPU_PAIRS = 1024  # the most pairs of a block on a CPU; larger blocks leave its cache
FULL = {"cpu": 1.0, "cuda": 0.75}  # the share of pairs from which on the others are computed too
FAR = 2**60  # further than any key


class Tiles:
    """Blocks of a batch's pairs, in four steps; iterating gives each [`Block`].

    1. [`Ends`]: the prefixes and suffixes of each sequence that are in a pair.
    2. `_strips`: `side` neighbouring prefixes of a sequence are a strip, and so are `side` neighbouring suffixes.
    3. `_tiles`: a tile is a strip of prefixes and a strip of suffixes behind it. Tiles have numbers, one strip of
       prefixes after the other, so none is stored. Random pairs are tiles of side 1.
    4. `_block`: consecutive tiles, with their pairs, labels and weights.

    Args:
        sequences: the batch.
        least_gap: 1 or 2.
        block_size: the most pairs of a block.
        pairs_per_sequence: the number of random pairs of each sequence; None for all pairs.
        suffixes: False without suffix states.
        weights: how pairs weigh, see [`Sequences.weights`].

    Attributes:
        empty: no pair counts; nothing below is set then.
        tokens: the number of trained tokens of sequences that have a pair, [].
        unit: about the mean weight of a pair, [].
        prefix, suffix: places in the flattened batch, [strips, side]; 0 where a strip has no more.
    """

    def __init__(
        self,
        sequences: Sequences,
        least_gap: int,
        block_size: int,
        pairs_per_sequence: int | None = None,
        suffixes: bool = True,
        weights: PairWeights = "sequence",
    ) -> None:
        ends = Ends(sequences, least_gap)
        self.empty = len(ends.prefix) == 0
        if self.empty:
            return
        kind = sequences.tokens.device.type
        exact = torch.float32 if kind == "mps" else torch.float64
        block_size = min(block_size, CPU_PAIRS) if kind == "cpu" else block_size
        self._sequences, self._least, self._suffixes, self._kind = sequences, least_gap, suffixes, weights
        self.tokens = ends.tokens
        self.side = _side(ends, block_size) if pairs_per_sequence is None else 1
        self._strips(ends, pairs_per_sequence, exact)
        pairs = self._tiles(ends, pairs_per_sequence)
        self.unit = ends.tokens.to(exact) / pairs
        self._full = pairs >= FULL.get(kind, FULL["cuda"]) * self._count * self.side**2
        blocks = math.ceil(self._count / max(1, block_size // self.side**2))
        self._per_block = math.ceil(self._count / blocks)  # of equal size

    def _strips(self, ends: Ends, pairs_per_sequence: int | None, exact: torch.dtype) -> None:
        """All that is known of prefixes and of suffixes, each [strips, side]."""
        drawn = ends.pairs if pairs_per_sequence is None else ends.pairs.clamp(max=pairs_per_sequence)
        shared = ends.trained if self._kind == "sequence" else ends.pairs  # all pairs of a sequence have it in common
        slots = self._slots(ends.prefix_key, ends)
        self.prefix = self._spread(ends.prefix, slots, 0)
        self._prefix_key = self._spread(ends.prefix_key, slots, FAR)
        self._weight = self._spread(shared.to(exact) / drawn, slots, 0)
        self._before = self._spread(ends.before, slots, 0)
        slots = self._slots(ends.suffix_key, ends)
        self.suffix = self._spread(ends.suffix, slots, 0)
        self._suffix_key = self._spread(ends.suffix_key, slots, -FAR)
        self._apart = self._spread(ends.apart, slots, 0)
        self._behind = self._spread(ends.behind, slots, 0)

    def _slots(self, key: Tensor, ends: Ends) -> Tensor:
        """The place of each element among all strips side by side; a sequence begins with a strip of its own."""
        lane = (torch.arange(len(key), device=key.device) - torch.searchsorted(key, ends.span(key)[0])) % self.side
        return ((lane == 0).cumsum(0) - 1) * self.side + lane

    def _spread(self, values: Tensor, slots: Tensor, empty: int) -> Tensor:
        """Values at their slots, [strips, side]."""
        strips = int(slots[-1]) // self.side + 1
        return values.new_full((strips * self.side,), empty).index_copy(0, slots, values).view(strips, self.side)

    def _tiles(self, ends: Ends, pairs_per_sequence: int | None) -> int:
        """Numbers the tiles, and gives the number of their pairs."""
        self._drawn = None if pairs_per_sequence is None else ends.drawn(pairs_per_sequence)
        if self._drawn is not None:
            self._count = len(self._drawn[0])
            return self._count
        strip = self._slots(ends.suffix_key, ends) // self.side
        key = self._prefix_key[:, 0]
        self._first = strip[torch.searchsorted(ends.suffix_key, key + self._least)]
        last = strip[torch.searchsorted(ends.suffix_key, ends.span(key)[1]) - 1]
        self._tiles_before = functional.pad((last - self._first + 1).cumsum(0), (1, 0))
        self._count, pairs = torch.stack([self._tiles_before[-1], ends.counts.sum()]).tolist()
        return pairs

    def __iter__(self) -> Iterator[Block]:
        for begin in range(0, self._count, self._per_block):
            end = min(begin + self._per_block, self._count)
            if self._drawn is not None:
                yield self._block(*(part[begin:end] for part in self._drawn))
                continue
            number = torch.arange(begin, end, device=self.prefix.device)
            prefix = torch.searchsorted(self._tiles_before[1:], number, right=True)
            yield self._block(prefix, self._first[prefix] + number - self._tiles_before[prefix])

    def _block(self, prefix: Tensor, suffix: Tensor) -> Block:
        """The block of some tiles, from their strips of prefixes and of suffixes, each [tiles]."""
        tokens, end_token = self._sequences.tokens.flatten(), self._sequences.end_token
        gap = self._suffix_key[suffix][:, None] - self._prefix_key[prefix][..., None]  # [tiles, side, side]
        pairs = (gap >= 2) & self._apart[suffix][:, None]
        nexts = tokens[self.prefix[prefix] + 1][..., None].expand_as(gap)
        prevs = tokens[self.suffix[suffix] - 1][:, None].expand_as(gap)
        if self._least == 1:
            meet = gap == 1
            pairs = pairs | meet
            nexts, prevs = (labels.masked_fill(meet, end_token) for labels in (nexts, prevs))
        weights = self._weight[prefix][..., None] * pairs
        if self._kind == "gap":
            weights = weights / (1 + self._before[prefix][..., None] + self._behind[suffix][:, None])
        places = None
        parts: tuple[Tensor, ...] = (nexts, prevs, weights)
        if not self._suffixes:
            parts = tuple(part.flatten(0, 1) for part in parts)
        else:
            parts = tuple(part.reshape(-1, 1) for part in parts)
            if not self._full:
                places = pairs.flatten().nonzero()[:, 0]
                parts = tuple(part[places] for part in parts)
        return Block(prefix, suffix, self.side, places, *parts)


def _side(ends: Ends, block_size: int) -> int:
    """A side that leaves few places empty behind the longest sequence."""
    begin, end = (torch.searchsorted(ends.prefix_key, key) for key in ends.span(ends.prefix_key))
    longest = int((end - begin).max())
    return min(math.ceil(longest / math.ceil(longest / SIDE)), math.isqrt(block_size))
