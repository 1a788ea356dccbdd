"""The states of one row's cells as plain integers, the index of cells that later cells look into, and batches of rows.

The states of cells that were updated together form the tree of `dat_machine`, with a list of values for each register.
A register that a layer does not change is the same list before and after it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import ne
from sys import getsizeof
from typing import Any

import torch
from torch import Tensor

from .dat_embedding import Registers
from .dat_machine import Group

Key = tuple[Hashable, ...]


class FirstCells:
    """The cells that may be read, by what is compared with the reading cell.

    A cell is added with its `key`, equal to that of its readers, and with its `others`, each different from that of its
    readers. Cells are added in their order. Of the cells with the same key and others only the first (or last) can be
    read, and only that one is kept. So with one difference to hold, at most two cells are looked at; with more, at most
    one for each combination of others.

    Args:
        last: find the last cell instead of the first.

    Example:

    ```python
    >>> cells = FirstCells(last=False)
    >>> cells.add(0, ("a",), ("x",))
    >>> cells.add(1, ("a",), ("y",))
    >>> cells.find(("a",), ("z",)), cells.find(("a",), ("x",)), cells.find(("b",), ("x",))
    (0, 1, None)

    ```
    """

    def __init__(self, last: bool):
        self.last = last
        self._cells: dict[Key, dict[Key, int]] = {}  # those of a key in their order

    def add(self, cell: int, key: Key, others: Key) -> None:
        """Adds the next cell."""
        cells = self._cells.setdefault(key, {})
        if self.last:
            cells.pop(others, None)
        cells.setdefault(others, cell)

    def find(self, key: Key, others: Key) -> int | None:
        """The first (or last) cell with this key that differs in all `others`."""
        cells = self._cells.get(key)
        if cells is None:
            return None
        for differing in reversed(cells) if self.last else cells:
            if all(map(ne, differing, others)):
                return cells[differing]
        return None


Columns = tuple[list[int], ...]  # a row's registers: one list for each, with a value for each cell
Path = tuple[tuple[int, int], ...]  # of every enclosing repeat block: its place among the statements, the repetition


@dataclass(eq=False)
class Line:
    """The cells of a row, in order. It only grows; a row that goes another way continues on a copy.

    Args:
        groups: the cells, as they were updated together: the prompt's, then one by one.
        found: for the heads of layers that have read: the number of groups in the index of cells, and the index.
    """

    groups: list[RowCells] = field(default_factory=list)
    found: dict[tuple[Path, int, int], tuple[int, FirstCells]] = field(default_factory=dict)

    def group_of(self, cell: int) -> RowCells:
        """The group of the row's cell with this index."""
        return self.groups[max(0, cell - self.groups[0].size + 1)]


@dataclass(eq=False)
class RowCells:
    """Cells of one row that were updated together.

    Args:
        line: the row; these cells are among its groups.
        first: the index of their first cell in the row.
        size: their number.
        tree: the inputs of every layer, then the registers at the end.
    """

    line: Line
    first: int
    size: int
    tree: list[Any] = field(default_factory=list)

    @property
    def final(self) -> Columns:
        """The registers after the last layer."""
        return self.tree[-1]

    def before(self, path: Path, place: int) -> Columns:
        """The input of a statement of a block, or its end; a repetition that was not needed is the last that was."""
        body = self.tree
        for block, repetition in path:
            rounds = body[block]
            body = rounds[min(repetition, len(rounds) - 1)]
        return body[place]

    def next(self) -> RowCells:
        """The next cell of the row, not updated yet."""
        line = self.line
        if line.groups[-1] is not self:
            line = Line(line.groups[: line.groups.index(self) + 1])
        line.groups.append(RowCells(line, self.first + self.size, 1))
        return line.groups[-1]


@dataclass
class RowGroup:
    """Cells that were updated together, of all rows of a batch; see `dat_machine.Group`.

    Args:
        rows: of each row its cells, None if it has none now.
        last: of each row the cells that came last, these or earlier ones.
        width: the largest number of cells.
    """

    rows: Sequence[RowCells | None]
    last: Sequence[RowCells]
    width: int

    @property
    def count(self) -> Tensor:
        """The number of cells in each row so far, [batch]."""
        return torch.tensor([cells.first + cells.size for cells in self.last])

    @property
    def final(self) -> Registers:
        """The registers after the last layer, [batch, cells] each."""
        return tuple(self.register(index) for index in range(len(self.last[0].final)))

    def register(self, index: int) -> Tensor:
        """A register after the last layer, [batch, cells]."""
        return self._tensor([None if cells is None else cells.final[index] for cells in self.rows])

    def memory(self) -> dict[int, int]:
        """The bytes of the lists of values, by their ids; those of the values themselves are not counted."""
        found: dict[int, int] = {}

        def count(node: Any) -> None:
            for child in node:
                if isinstance(node, tuple):
                    found[id(child)] = getsizeof(child)
                else:
                    count(child)

        for cells in self.rows:
            count([] if cells is None else cells.tree)
        return found

    def select(self, rows: Tensor) -> RowGroup:
        """The group with these rows of the batch."""
        chosen = rows.tolist()
        return RowGroup([self.rows[row] for row in chosen], [self.last[row] for row in chosen], self.width)

    @cached_property
    def tensors(self) -> Group:
        """The same states as tensors."""
        done: dict[tuple[int, ...], Tensor] = {}

        def shared(columns: list[list[int] | None]) -> Tensor:
            key = tuple(map(id, columns))
            if key not in done:
                done[key] = self._tensor(columns)
            return done[key]

        def merged(nodes: list[Any]) -> Any:
            """A node of the tree from that of every row."""
            kind = next(node for node in nodes if node is not None)
            if isinstance(kind, tuple):
                return tuple(shared([None if node is None else node[i] for node in nodes]) for i in range(len(kind)))
            longest = max(len(node) for node in nodes if node is not None)
            return [
                merged([None if node is None else node[min(i, len(node) - 1)] for node in nodes])
                for i in range(longest)
            ]

        tree = merged([None if cells is None else cells.tree for cells in self.rows])
        positions = self._tensor(
            [
                None if cells is None else list(range(cells.first + 1, cells.first + cells.size + 1))
                for cells in self.rows
            ]
        ).long()
        last = tuple(
            torch.tensor([[cells.final[i][-1]] for cells in self.last], dtype=torch.int32) for i in range(len(tree[-1]))
        )
        return Group(tree, tree[-1], positions > 0, positions, last, self.count)

    def _tensor(self, columns: Sequence[list[int] | None]) -> Tensor:
        """Values by row, [batch, cells]; 0 where there is no cell."""
        filled = [[] if column is None else column for column in columns]
        return torch.tensor(
            [
                column if len(column) == self.width else [*column, *[0] * (self.width - len(column))]
                for column in filled
            ],
            dtype=torch.int32,
        )
