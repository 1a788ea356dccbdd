"""A stack for long contexts: of every row of stack attention only the few entries that carry its mass.

Trained stacks are nearly certain of their operations, so that a row has a few entries above rounding error. Then a
position costs a few reads instead of a product with all earlier rows, and the memory grows with the length, not its
square.

The error is bounded, in the sum of the absolute differences of a row. With e_i the bound of row i and d_i the mass that
is dropped there, Eq. 20-23 of "A Transformer with Stack Attention" give

    e_i = noop_i e_{i-1} + pop_i (e_{i-1} + sum_j alpha_{i-1}(j) e_{j-1}) + d_i

A push drops what was inherited. So a drop of at most `tolerance / positions` a row keeps nearly certain stacks within
the tolerance over so many positions; the bound is known for every row.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .stack_kernel_cpu import available, compiled

_FEWEST = 4
"""Entries of a row at first."""


class SparseRows:
    """The rows of the stack attention alpha_i, by their largest entries.

    Attributes:
        index: the columns of the entries, [batch, capacity, kept].
        weight: the entries, [batch, capacity, kept]; 0 where there is none.
        error: the bound e_i, [batch, capacity].
        length: the rows so far.

    Args:
        drop: the most mass that a row may lose.
    """

    def __init__(self, drop: float, like: Tensor) -> None:
        self.drop, self.length = drop, 0
        self.scratch = Scratch() if available else None
        batch = len(like)
        self.index = like.new_zeros(batch, 1, _FEWEST, dtype=torch.long)
        self.weight = like.new_zeros(batch, 1, _FEWEST)
        self.error = like.new_zeros(batch, 1)

    def step(self, actions: Tensor, start: Tensor) -> None:
        """Adds the next row, by the compiled kernel where there is one; arguments as below."""
        if self.scratch is None or actions.device.type != "cpu":
            self.append(*self.next_row(actions, start))
            return
        self._make_room(self.length + 1)
        while True:
            tensors = (self.index, self.weight, self.error)
            needed = self.scratch.next_entries(*tensors, self.length, actions, start, self.drop)
            if needed <= self.index.shape[2]:
                break
            self._resize(self.index.shape[1], needed + needed // 4)
        self.length += 1

    def next_row(self, actions: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """The next row before anything is dropped, by Eq. 20-23 over the kept entries.

        Args:
            actions: [batch, 2 + K], of the next position.
            start: the column of position 0, [batch].

        Returns:
            alpha of the next position [batch, length + 1], and its bound [batch].
        """
        at = self.length
        row = actions.new_zeros(len(actions), at + 1)
        inside = (start < at)[:, None]
        row[:, at:] = torch.where(inside, actions[:, :1], (start == at).to(actions.dtype)[:, None])  # Eq. 19, 20
        if at == 0:
            return row, actions.new_zeros(len(actions))
        place, mass = self.index[:, at - 1], torch.where(inside, self.weight[:, at - 1], 0)
        bound = torch.where(inside[:, 0], self.error[:, at - 1], 0)
        row.scatter_add_(1, place, actions[:, -1:] * mass)  # Eq. 21
        error = actions[:, -1] * bound
        for k in range(1, actions.shape[1] - 1):  # Eq. 22
            if k > 1:  # the same column may be there several times
                whole = torch.zeros_like(row).scatter_add_(1, place, mass)
                mass, place = whole.topk(int((whole > 0).sum(1).amax()), dim=1)
            bottom, below = place == start[:, None], (place - 1).clamp(min=0)
            lifted = mass.masked_fill(bottom, 0)
            bound = bound + (lifted * self.error.gather(1, below)).sum(1)
            rows = below[..., None].expand(-1, -1, self.index.shape[2])
            under = (self.weight.gather(1, rows) * lifted[..., None]).flatten(1)
            place = torch.cat([self.index.gather(1, rows).flatten(1), place], 1)
            mass = torch.cat([under, mass - lifted], 1)
            row.scatter_add_(1, place, actions[:, k, None] * mass)
            error = error + actions[:, k] * bound
        return row, error

    def last(self) -> Tensor:
        """The last row, [batch, length]; before the first, a column of zeros."""
        row = self.weight.new_zeros(len(self.weight), max(self.length, 1))
        if self.length == 0:
            return row
        return row.scatter_add_(1, self.index[:, self.length - 1], self.weight[:, self.length - 1])

    def append(self, row: Tensor, error: Tensor) -> None:
        """Keeps the largest entries of a row [batch, length + 1], and drops the others; the row is overwritten."""
        kept = min(self.index.shape[2], row.shape[1])
        weight, index = row.topk(kept, dim=1)
        dropped = row.scatter_(1, index, 0).sum(1)
        if bool((dropped > self.drop).any()):
            row.scatter_(1, index, weight)
            tails = row.sort(1).values.cumsum(1)
            needed = row.shape[1] - int((tails <= self.drop).sum(1).min())
            self._resize(self.index.shape[1], needed + needed // 4)
            self.append(row, error)
            return
        self._make_room(self.length + 1)
        self.index[:, self.length, :kept], self.weight[:, self.length, :kept] = index, weight
        self.error[:, self.length] = error + dropped
        self.length += 1

    def read(self, values: Tensor) -> Tensor:
        """Eq. 25 for the last row: [batch, N, hidden] to [batch, 1, hidden]."""
        index, weight = self.index[:, self.length - 1], self.weight[:, self.length - 1]
        chosen = values.gather(1, index[..., None].expand(-1, -1, values.shape[2]))
        return weight[:, None].to(values.dtype) @ chosen

    def dense(self) -> Tensor:
        """alpha of all rows so far, [batch, length, length]."""
        alpha = self.weight.new_zeros(len(self.weight), self.length, self.length)
        return alpha.scatter_add_(2, self.index[:, : self.length], self.weight[:, : self.length])

    def take(self, rows: Tensor) -> None:
        """Keeps these rows of the batch, in this order; rows may repeat."""
        chosen = rows.to(self.index.device)
        self.index, self.weight, self.error = self.index[chosen], self.weight[chosen], self.error[chosen]

    def crop(self, length: int) -> None:
        """Keeps the first positions."""
        self.length = length

    def _make_room(self, length: int) -> None:
        if length > self.index.shape[1]:
            self._resize(2 * length, self.index.shape[2])

    def _resize(self, capacity: int, kept: int) -> None:
        more = (0, kept - self.index.shape[2], 0, capacity - self.index.shape[1])
        self.index, self.weight = pad(self.index, more), pad(self.weight, more)
        self.error = pad(self.error, more[2:])


# ----------------------------------------------------- the next row on the CPU, compiled: `SparseRows.step` in one call


@compiled
def _add(row, place, count, column, share):
    """Adds a share to a column, which is noted in `place` the first time; returns how many are noted."""
    if share > 0:
        if row[column] == 0:
            place[count] = column
            count += 1
        row[column] += share
    return count


@compiled
def _next(index, weight, error, at, actions, start, drop, chosen, kept, bound, row, place, mass):
    """Writes the entries of row `at` to `chosen` and `kept`, its bound to `bound`; returns how many it needs."""
    most, pops, width = 0, actions.shape[1] - 2, chosen.shape[1]
    for b in range(actions.shape[0]):
        count = 0  # of the columns that have an entry, in `place`
        if start[b] >= at:
            if start[b] == at:
                count = _add(row, place, 0, at, 1.0)
            total = 0.0
        else:
            push, noop = actions[b, 0], actions[b, pops + 1]
            count = _add(row, place, 0, at, push)
            total = noop * error[b, at - 1]
            for e in range(index.shape[2]):
                if weight[b, at - 1, e] > 0:
                    column = index[b, at - 1, e]
                    mass[0, column] = weight[b, at - 1, e]
                    count = _add(row, place, count, column, noop * weight[b, at - 1, e])
            state = error[b, at - 1]
            for k in range(pops):
                now, then = k % 2, (k + 1) % 2
                for column in range(at):
                    share = mass[now, column]
                    if share == 0:
                        continue
                    mass[now, column] = 0
                    if column == start[b]:
                        mass[then, column] += share
                        continue
                    state += share * error[b, column - 1]
                    for e in range(index.shape[2]):
                        under = share * weight[b, column - 1, e]
                        if under > 0:
                            mass[then, index[b, column - 1, e]] += under
                pop = actions[b, k + 1]
                total += pop * state
                for column in range(at):
                    count = _add(row, place, count, column, pop * mass[then, column])
            for column in range(at):
                mass[0, column] = 0
                mass[1, column] = 0
        sizes = np.empty(count, row.dtype)
        for e in range(count):
            sizes[e] = row[place[e]]
        order = np.argsort(sizes)
        lost, needed = 0.0, count
        while needed > 0 and lost + sizes[order[count - needed]] <= drop:
            lost += sizes[order[count - needed]]
            needed -= 1
        most = max(most, needed)
        for e in range(width):
            chosen[b, e], kept[b, e] = 0, 0
        lost = 0.0
        for e in range(count):
            column = place[order[count - 1 - e]]
            if e < width:
                chosen[b, e], kept[b, e] = column, row[column]
            else:
                lost += row[column]
            row[column] = 0
        bound[b] = total + lost
    return most


class Scratch:
    """The room that the kernel needs, for rows of any length; it is zero between calls."""

    def __init__(self) -> None:
        self.row, self.place, self.mass = np.zeros(0), np.zeros(0, np.int64), np.zeros((2, 0))

    def next_entries(
        self, index: Tensor, weight: Tensor, error: Tensor, at: int, actions: Tensor, start: Tensor, drop: float
    ) -> int:
        """Writes row `at` of the tensors, which have room for it.

        Returns:
            The entries that the row needs; if they are more than `index` has, its entries are not enough.
        """
        if len(self.row) <= at:
            size = 2 * at + 16
            self.row, self.place, self.mass = np.zeros(size), np.zeros(size, np.int64), np.zeros((2, size))
        arrays = [tensor.detach().numpy() for tensor in (index, weight, error)]
        given = (actions.detach().double().numpy(), start.numpy(), drop)
        written = [array[:, at] for array in arrays]
        return int(_next(*arrays, at, *given, *written, self.row, self.place, self.mass))
