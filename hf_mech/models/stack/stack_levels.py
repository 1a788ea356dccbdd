"""The stack by its levels, for generation and long texts: the expected element k below the top, instead of alpha.

With alpha_i the stack attention (Eq. 19-23 of "A Transformer with Stack Attention"), T the matrix of rows T[0] = e_0
and T[j] = alpha_{j-1}, and V what the positions hold, the levels after step i are

    S_i(k) = alpha_i T^k V,    and S_i(0) is Eq. 25, the top of the stack.

Eq. 20-23 multiplied by T^k V need no alpha, because e_i T = alpha_{i-1}:

    S_i(0) = push_i v_i        + noop_i S_{i-1}(0) + sum_m pop_{i,m} S_{i-1}(m)
    S_i(k) = push_i S_{i-1}(k-1) + noop_i S_{i-1}(k) + sum_m pop_{i,m} S_{i-1}(k+m)

Below the lowest element lies position 0, again and again: popping the empty stack leaves it empty. So the memory grows
with the length, not with its square. A column that is 1 for every pushed element becomes the probability that the stack
is higher than k; levels below all probable heights are left out, within rounding or, if asked for, within a tolerance.

Only the uppermost levels change at every step. The deeper ones follow after a block of steps: as no push reached
them, they have moved by the sum of the block's pushes and pops, a convolution with the distribution of that sum.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK, LONG_BLOCK, DEEP = 16, 64, 512
"""Steps after which the deeper levels follow; and the same from so many levels on."""

LONG = 2048
"""From so many positions on the levels are about as fast as alpha as a whole, and much smaller."""

_TILE = 32


def next_levels(levels: Tensor, row: Tensor, actions: Tensor) -> Tensor:
    """The equations above for as many levels as can be known from so many: [batch, n, size] to [batch, n - K, size].

    Args:
        levels: S_{i-1}(0), ..., S_{i-1}(n - 1).
        row: v_i, [batch, 1, size].
        actions: of position i, [batch, 2 + K].
    """
    pops = actions.shape[1] - 2
    left = levels.shape[1] - pops
    push, *pop, noop = actions[:, :, None, None].unbind(1)
    new = torch.cat([row, levels[:, : left - 1]], 1) * push
    new = torch.addcmul(new, levels[:, :left], noop)
    for m, share in enumerate(pop, 1):
        new = torch.addcmul(new, levels[:, m : m + left], share)
    return new


def moves(actions: Tensor) -> Tensor:
    """The distribution of the sum of steps' moves, push -1, no-op 0, pop m, [batch, steps, 2 + K] to [batch, moves].

    Its first entry is that of -steps. In float64: it is a product of the polynomials of the steps.
    """
    steps, kinds = actions.shape[1:]
    size = (kinds - 1) * steps + 1
    single = torch.cat([actions[..., :1], actions[..., -1:], actions[..., 1:-1]], -1).double()
    return torch.fft.irfft(torch.fft.rfft(single, size).prod(1), size)


def moved(levels: Tensor, bottom: Tensor, shift: Tensor, least: float) -> Tensor:
    """The levels below those that pushes have reached: sum_s shift(s) levels(k + s) for every k, [batch, depth, size].

    Args:
        levels: [batch, depth, size], before the steps.
        bottom: what lies below them, [batch, 1, size].
        shift: of [`moves`].
        least: smaller entries of it are left out at both ends.
    """
    batch, depth, size = levels.shape
    likely = (shift > least).any(0).nonzero()[:, 0].tolist()
    first, width = likely[0], likely[-1] - likely[0] + 1
    kernel = shift[:, first : first + width].to(levels.dtype)
    # A Toeplitz matrix: row r is the kernel, r places further.
    tile = min(_TILE, depth)
    matrix = pad(kernel, (0, tile)).repeat(1, tile)[:, : tile * (width + tile - 1)].view(batch, tile, -1)
    tiles = -(-depth // tile)
    longest = tiles * tile + width - 1
    given = torch.cat([levels[:, first:], bottom.expand(-1, max(longest + first - depth, 1), -1)], 1)
    windows = given[:, :longest].unfold(1, width + tile - 1, tile).transpose(2, 3)  # [batch, tiles, width, size]
    with torch.autocast(levels.device.type, enabled=False):  # an error would affect all later positions
        sums = matrix[:, None] @ windows
    return sums.view(batch, tiles * tile, size)[:, :depth]


def _lost(like: Tensor) -> float:
    """A probability that is lost in rounding, even if it is added up over a million steps."""
    return torch.finfo(like.dtype).eps * 2.0**-20


class Levels:
    """The levels of a growing stack.

    They can be differentiated; the actions' gradient is that of distributions, as behind a softmax.

    Where levels are left out, position 0 stands in their place. Each time the error of later tops, in the sum of the
    absolute differences of a row of alpha, grows by at most twice the probability that the stack is higher.

    Attributes:
        built: the positions that they contain.
        below: the levels when the last block ended, [batch, depth, size + 1]; the last column is the probability that
            the stack is so high.
        near: the uppermost levels now.
        bottom: position 0, which lies below all of them, [batch, 1, size + 1]; zero before it has come.

    Args:
        drop: levels that are not reached with a greater probability are left out at the end of a block; 0: only those
            whose probability is lost in rounding.
    """

    below: Tensor
    near: Tensor
    bottom: Tensor

    def __init__(self, drop: float) -> None:
        self.drop = drop
        self.built = 0
        self._ended, self._block = 0, BLOCK  # where the last block ended, and the length of this one
        self._waits = True  # for the position 0 of some row

    def follow(self, values: Tensor, actions: Tensor, start: Tensor | None, length: int) -> Tensor:
        """Takes in the positions up to `length`, and returns what they read, [batch, new, size].

        Args:
            values: what all positions hold, [batch, capacity, size + 1]; the last column is 1.
            actions: of all positions, [batch, capacity, 2 + K]; those up to position 0 are overwritten by no-ops.
            start: the column of position 0 of every row, [batch]; None means 0.
            length: more than `built`.
        """
        first = self.built
        waits = self._waits
        if waits:
            begin = torch.zeros(len(values), dtype=torch.long, device=values.device) if start is None else start
            self._begin_rows(values, actions, begin, length)
        tops = []
        for i in range(first, length):
            self.near = next_levels(self.near, values[:, i : i + 1], actions[:, i])
            self.built = i + 1
            tops.append(self.near[:, :1, :-1])
            if self.near.shape[1] == self._block:
                self._end_block(actions)
        read = tops[0] if len(tops) == 1 else torch.cat(tops, 1)
        if not waits or start is None:
            return read
        places = torch.arange(first, length, device=values.device)
        return read.masked_fill((places < start[:, None])[..., None], 0)

    def whole(self, actions: Tensor, depth: int | None = None) -> Tensor:
        """All levels, [batch, depth, size + 1]; with a depth, as many.

        Args:
            actions: as of [`follow`].
        """
        steps = self.built - self._ended
        levels = self.near[:, :steps]
        if self.below.shape[1]:
            shift = moves(actions[:, self._ended : self.built])
            levels = torch.cat([levels, moved(self.below, self.bottom, shift, _lost(levels))], 1)
        if depth is None:
            return levels
        return torch.cat([levels, self.bottom.expand(-1, max(depth - levels.shape[1], 0), -1)], 1)[:, :depth]

    def forget(self, length: int) -> None:
        """Keeps the first positions."""
        if length < self._ended:
            self.__init__(self.drop)  # type: ignore[misc]
        elif length < self.built:
            self.built, self._waits = self._ended, True

    def take(self, rows: Tensor) -> None:
        """Keeps these rows of the batch, in this order; rows may repeat."""
        if self.built:
            self.below, self.near, self.bottom = self.below[rows], self.near[rows], self.bottom[rows]

    def _begin_rows(self, values: Tensor, actions: Tensor, start: Tensor, length: int) -> None:
        """Lays position 0 below the rows that begin before `length`, and nothing below those that begin later."""
        first = self.built
        if first == 0:
            self.bottom = torch.zeros_like(values[:, :1], dtype=actions.dtype)
            self.below = self.bottom[:, :0]
        own = values.gather(1, start.clamp(max=length - 1)[:, None, None].expand(-1, 1, values.shape[2])).to(
            actions.dtype, copy=True
        )
        own[..., -1] = 0
        begun = (start < first)[:, None, None]
        later = (start >= length)[:, None, None]
        bottom = torch.where(begun, self.bottom, own.masked_fill(later, 0))
        self.below, self.bottom = torch.where(begun, self.below, bottom), bottom
        if first > self._ended:
            self.near = torch.where(begun, self.near, bottom)
        else:
            self.near = self._uppermost(actions.shape[2])
        places = torch.arange(first, length, device=start.device)
        nothing = actions.new_tensor([0.0] * (actions.shape[2] - 1) + [1.0])
        actions[:, first:length] = torch.where((places > start[:, None])[..., None], actions[:, first:length], nothing)
        self._waits = bool((start >= length).any())

    def _uppermost(self, kinds: int) -> Tensor:
        """As many levels as a block of steps needs."""
        needed = (kinds - 1) * self._block
        near = self.below[:, :needed]
        return torch.cat([near, self.bottom.expand(-1, needed - near.shape[1], -1)], 1)

    def _end_block(self, actions: Tensor) -> None:
        levels = self.whole(actions)
        least = max(self.drop, _lost(levels))
        depth = int((levels[..., -1].amax(0) > least).sum())
        self.below, self._ended = levels[:, :depth], self.built
        self._block = BLOCK if depth < DEEP else LONG_BLOCK
        self.near = self._uppermost(actions.shape[2])
