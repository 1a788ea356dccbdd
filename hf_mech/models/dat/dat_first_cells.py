"""The first (or last) cell with a key: found in one step, whatever the number of cells."""

from __future__ import annotations

from collections.abc import Hashable
from operator import ne

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
