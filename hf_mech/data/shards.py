"""How the rows of a split are shared out: blocks of neighbours, so that any number of processes keeps their order.

`Dataset.shard` does this with rows that exist; these are still to be made.
"""

from __future__ import annotations

from collections.abc import Iterator

SHARDS = 16  # of each split: as many processes, DataLoader workers or nodes can share the work
ROWS_AT_A_TIME = 10_000  # the most rows of a table, so that memory does not grow with the data set


def tables_of(rows: int, shard: int) -> Iterator[range]:
    """The rows of one shard of a split with so many rows, by index: one range for each table.

    Example:

    ```python
    >>> list(tables_of(400_000, 15))
    [range(375000, 385000), range(385000, 395000), range(395000, 400000)]

    ```
    """
    end = rows * (shard + 1) // SHARDS
    for first in range(rows * shard // SHARDS, end, ROWS_AT_A_TIME):
        yield range(first, min(first + ROWS_AT_A_TIME, end))
