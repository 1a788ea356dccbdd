"""The next row of a sparse stack on the CPU, compiled: `SparseRows.next_row` and what it keeps, in one call.

numba is optional: without it `available` is False, and the PyTorch form is used.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from .stack_kernel_cpu import compiled


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
