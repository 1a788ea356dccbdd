"""The pairs of a batch in square tiles of neighbouring prefixes and suffixes, and tiles in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from .belief_state_blocks import Block
from .belief_state_ends import Ends
from .belief_state_pairs import PairWeights, Sequences

SIDE = 8  # of a tile; the larger, the fewer reads of a state, but the more empty places on the diagonal
CPU_PAIRS = 1024  # the most pairs of a block on a CPU; larger blocks leave its cache
FULL = {"cpu": 1.0, "cuda": 0.75}  # the share of pairs from which on the others are computed too
FAR = 2**60  # further than any key


class Tiles:
    """Prefixes and suffixes of each sequence in strips of `side`; a tile is a strip of each.

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
        self.tokens = ends.tokens
        self._labels, self._end_token, self._least = sequences.tokens.flatten(), sequences.end_token, least_gap
        self._suffixes = suffixes
        kind = sequences.tokens.device.type
        exact = torch.float32 if kind == "mps" else torch.float64
        drawn = ends.pairs if pairs_per_sequence is None else ends.pairs.clamp(max=pairs_per_sequence)
        shared = ends.trained if weights == "sequence" else ends.pairs  # all pairs of the sequence have it in common
        self._alike = weights == "sequence"
        if kind == "cpu":
            block_size = min(block_size, CPU_PAIRS)
        self.side = _side(ends, block_size) if pairs_per_sequence is None else 1

        _, slots = self._strips(ends.prefix_key, ends)
        self.prefix = self._spread(ends.prefix, slots, 0)
        self._prefix_key = self._spread(ends.prefix_key, slots, FAR)
        self._weight = self._spread(shared.to(exact) / drawn, slots, 0)
        self._before = self._spread(ends.before, slots, 0)
        strip, slots = self._strips(ends.suffix_key, ends)
        self.suffix = self._spread(ends.suffix, slots, 0)
        self._suffix_key = self._spread(ends.suffix_key, slots, -FAR)
        self._apart = self._spread(ends.apart, slots, 0)
        self._behind = self._spread(ends.behind, slots, 0)

        self._drawn = None if pairs_per_sequence is None else ends.drawn(pairs_per_sequence)
        if self._drawn is None:
            key = self._prefix_key[:, 0]
            self._first = strip[torch.searchsorted(ends.suffix_key, key + least_gap)]
            last = strip[torch.searchsorted(ends.suffix_key, ends.span(key)[1]) - 1]
            self._tiles_before = functional.pad((last - self._first + 1).cumsum(0), (1, 0))
            count, pairs = torch.stack([self._tiles_before[-1], ends.counts.sum()]).tolist()
        else:
            count = pairs = len(self._drawn[0])
        self._count = count
        self.unit = ends.tokens.to(exact) / pairs
        self._full = pairs >= FULL.get(kind, FULL["cuda"]) * count * self.side**2
        blocks = math.ceil(count / max(1, block_size // self.side**2))
        self._per_block = math.ceil(count / blocks)  # of equal size

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
        gap = self._suffix_key[suffix][:, None] - self._prefix_key[prefix][..., None]  # [tiles, side, side]
        pairs = (gap >= 2) & self._apart[suffix][:, None]
        nexts = self._labels[self.prefix[prefix] + 1][..., None].expand_as(gap)
        prevs = self._labels[self.suffix[suffix] - 1][:, None].expand_as(gap)
        if self._least == 1:
            meet = gap == 1
            pairs = pairs | meet
            nexts, prevs = (labels.masked_fill(meet, self._end_token) for labels in (nexts, prevs))
        weights = self._weight[prefix][..., None] * pairs
        if not self._alike:
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

    def _strips(self, key: Tensor, ends: Ends) -> tuple[Tensor, Tensor]:
        """The strip of each element, and its place among all strips side by side."""
        lane = (torch.arange(len(key), device=key.device) - torch.searchsorted(key, ends.span(key)[0])) % self.side
        strip = (lane == 0).cumsum(0) - 1
        return strip, strip * self.side + lane

    def _spread(self, values: Tensor, slots: Tensor, empty: int) -> Tensor:
        """Values at their slots, [strips, side]."""
        strips = int(slots[-1]) // self.side + 1
        return values.new_full((strips * self.side,), empty).index_copy(0, slots, values).view(strips, self.side)


def _side(ends: Ends, block_size: int) -> int:
    """A side that leaves few places empty behind the longest sequence."""
    begin, end = (torch.searchsorted(ends.prefix_key, key) for key in ends.span(ends.prefix_key))
    longest = int((end - begin).max())
    return min(math.ceil(longest / math.ceil(longest / SIDE)), math.isqrt(block_size))
