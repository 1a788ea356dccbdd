"""The cells that can be read at one place of a run, found by the values that are compared with those of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from operator import ne
from typing import Any, NamedTuple

State = Mapping[str, str | None]
"""A cell's state structure (33b): register -> value, None for nil."""


class Sought(NamedTuple):
    """What a cell N compares with a cell n, or n's side of it: values to be equal, and values to differ one by one."""

    equal: tuple[Any, ...]
    different: tuple[Any, ...] = ()


class Readable:
    """Cells in their order, of which a reader finds the least, or the greatest, without looking at all.

    Of cells with the same values only one can be read. So a reader with one value that must differ looks at two cells
    at most; with more such values it looks at one cell for each combination of them.

    Args:
        rightmost: find the greatest n.
    """

    def __init__(self, rightmost: bool) -> None:
        self.rightmost = rightmost
        self.groups = 0  # the groups of cells whose cells are here
        self._found: dict[tuple[Any, ...], dict[tuple[Any, ...], State]] = {}

    def add(self, cell: State, key: Sought) -> None:
        """Adds the next cell."""
        same = self._found.setdefault(key.equal, {})
        if self.rightmost:
            same.pop(key.different, None)
        same.setdefault(key.different, cell)

    def find(self, query: Sought) -> State | None:
        """The state of the cell to be read."""
        same = self._found.get(query.equal, {})
        candidates = reversed(same.items()) if self.rightmost else same.items()
        matching = (cell for different, cell in candidates if all(map(ne, different, query.different)))
        return next(matching, None)
