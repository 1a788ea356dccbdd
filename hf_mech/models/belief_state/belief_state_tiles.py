"""The pairs of a batch in square tiles of neighbouring prefixes and suffixes, and tiles in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .belief_state_ends import Ends
from .belief_state_pairs import Sequences

SIDE = 8  # of a tile: half of the tiles on the diagonal is empty, and a state is read once for SIDE pairs
CPU_PAIRS = 1024  # larger blocks leave the cache of a core: 2 to 3 times slower at 16,384


@dataclass(frozen=True)
class Block:
    """Some tiles.

    Attributes:
        prefix, suffix: the strips of prefixes and of suffixes of each tile, [tiles].
        weights: of each pair, 0 where there is none, [tiles, side, side].
        nexts, prevs: the labels of each pair, [tiles, side, side].
    """

    prefix: Tensor
    suffix: Tensor
    weights: Tensor
    nexts: Tensor
    prevs: Tensor


class Tiles:
    """Prefixes and suffixes of each sequence in strips of `side`; a tile is a strip of each.

    Args:
        sequences: the batch.
        least_gap: 1 or 2.
        block_size: the most pairs of a block.
        pairs_per_sequence: the number of random pairs of each sequence; None for all pairs.

    Attributes:
        tokens: the number of trained tokens of sequences that have a pair, [].
        prefix, suffix: places in the flattened batch, [strips, side]; 0 where a strip has no more.
        largest: the largest weight of a pair, [].
        empty: no pair counts.
    """

    def __init__(
        self, sequences: Sequences, least_gap: int, block_size: int, pairs_per_sequence: int | None = None
    ) -> None:
        ends = Ends(sequences, least_gap)
        self.tokens, self.empty = ends.tokens, len(ends.prefix) == 0
        self._labels, self._end_token, self._least = sequences.tokens.flatten(), sequences.end_token, least_gap
        if self.empty:
            return
        if pairs_per_sequence is None:
            self.side = _side(ends, block_size)
            scale = ends.trained / ends.pairs
        else:
            self.side = 1
            drawn = ends.pairs.clamp(max=pairs_per_sequence)
            scale = ends.trained / drawn
        first, prefix_strip, slots = self._strips(ends.prefix_key, ends)
        self.prefix = _spread(ends.prefix, slots, self.side, 0)
        self._prefix_key = _spread(ends.prefix_key, slots, self.side, _FAR)
        self.largest = scale.max()
        self._scale = _spread(scale, slots, self.side, 0)
        _, suffix_strip, slots = self._strips(ends.suffix_key, ends)
        self.suffix = _spread(ends.suffix, slots, self.side, 0)
        self._suffix_key = _spread(ends.suffix_key, slots, self.side, -_FAR)
        self._apart = _spread(ends.apart, slots, self.side, 0)
        if pairs_per_sequence is None:
            key = ends.prefix_key[first]
            self._first = suffix_strip[torch.searchsorted(ends.suffix_key, key + least_gap)]
            last = suffix_strip[torch.searchsorted(ends.suffix_key, ends.span(key)[1]) - 1]
            self._before = functional.pad((last - self._first + 1).cumsum(0), (1, 0))
            self.count = int(self._before[-1])
            self._drawn = None
        else:
            self._drawn = drawn_pairs(ends, pairs_per_sequence)
            self.count = len(self._drawn[0])
        if sequences.tokens.device.type == "cpu":
            block_size = min(block_size, CPU_PAIRS)
        per_block = max(1, block_size // self.side**2)
        self._per_block = math.ceil(self.count / math.ceil(self.count / per_block))  # blocks of equal size

    def __iter__(self) -> Iterator[Block]:
        for begin in range(0, self.count, self._per_block):
            number = torch.arange(begin, min(begin + self._per_block, self.count), device=self.prefix.device)
            if self._drawn is None:
                prefix = torch.searchsorted(self._before[1:], number, right=True)
                suffix = self._first[prefix] + number - self._before[prefix]
            else:
                prefix, suffix = (part[number] for part in self._drawn)
            yield self._block(prefix, suffix)

    def _block(self, prefix: Tensor, suffix: Tensor) -> Block:
        gap = self._suffix_key[suffix][:, None] - self._prefix_key[prefix][..., None]  # [tiles, side, side]
        pairs = (gap >= 2) & self._apart[suffix][:, None]
        nexts = self._labels[self.prefix[prefix] + 1][..., None].expand_as(gap)
        prevs = self._labels[self.suffix[suffix] - 1][:, None].expand_as(gap)
        if self._least == 1:
            meet = gap == 1
            pairs = pairs | meet
            nexts, prevs = (labels.masked_fill(meet, self._end_token) for labels in (nexts, prevs))
        return Block(prefix, suffix, self._scale[prefix][..., None] * pairs, nexts, prevs)

    def _strips(self, key: Tensor, ends: Ends) -> tuple[Tensor, Tensor, Tensor]:
        """Each strip's first element, each element's strip, and its place in the strips laid side by side."""
        lane = (torch.arange(len(key), device=key.device) - torch.searchsorted(key, ends.span(key)[0])) % self.side
        strip = (lane == 0).cumsum(0) - 1
        return (lane == 0).nonzero()[:, 0], strip, strip * self.side + lane


_FAR = 2**60  # further than any key


def _side(ends: Ends, block_size: int) -> int:
    """A side that leaves few places of the longest sequence's last strip empty."""
    longest = int(
        (
            torch.searchsorted(ends.prefix_key, ends.span(ends.prefix_key)[1])
            - torch.searchsorted(ends.prefix_key, ends.span(ends.prefix_key)[0])
        ).max()
    )
    return min(math.ceil(longest / math.ceil(longest / SIDE)), math.isqrt(block_size))


def _spread(values: Tensor, slots: Tensor, side: int, empty: int) -> Tensor:
    """Values at their slots, [strips, side]."""
    size = -(-(int(slots[-1]) + 1) // side) * side
    return values.new_full((size,), empty).index_copy(0, slots, values).view(-1, side)


def drawn_pairs(ends: Ends, count: int) -> tuple[Tensor, Tensor]:
    """The prefixes and suffixes of at most `count` random pairs of each sequence, one from each of `count` equal parts.

    Every pair is expected count / pairs times, so the pairs' losses with the weight pairs / count are unbiased.
    """
    begin, end = (torch.searchsorted(ends.prefix_key, key) for key in ends.span(ends.prefix_key))
    heads = (begin == torch.arange(len(begin), device=begin.device)).nonzero()[:, 0]  # a prefix of each sequence
    pairs = ends.pairs[heads]
    drawn = pairs.clamp(max=count)
    sequence = torch.repeat_interleave(drawn)
    part = torch.arange(len(sequence), device=begin.device) - (drawn.cumsum(0) - drawn)[sequence]
    uniform = torch.rand(len(sequence), device=begin.device, dtype=torch.float64)
    within = ((part + uniform) * (pairs / drawn.double())[sequence]).long().minimum(pairs[sequence] - 1)
    return ends.pair(ends.first_pair[heads][sequence] + within)
