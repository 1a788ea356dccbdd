"""How the rows of a split are shared out: blocks of neighbours, so that any number of processes keeps their order.

`Dataset.shard` does this with rows that exist; these are still to be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet

SHARDS = 16  # of each split: as many processes, DataLoader workers or nodes can share the work
ROWS_AT_A_TIME = 10_000  # the most rows of a table, so that memory does not grow with the data set
ROWS_OF_A_GROUP = 1_000  # of a Parquet file, at least, but for the last: what a reader has in memory at once


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


def shard_file(split: str, shard: int) -> str:
    """The path of a shard's file in a folder that `load_dataset(folder)` reads."""
    return f"data/{split}-{shard:05d}-of-{SHARDS:05d}.parquet"


def parquet_bytes(tables: Iterable[pa.Table], schema: pa.Schema) -> bytes:
    """A Parquet file of the tables. The bytes depend on these alone, and on the version of pyarrow."""
    sink, waiting = pa.BufferOutputStream(), []
    with pa.parquet.ParquetWriter(sink, schema) as writer:
        for table in tables:
            waiting.append(table)
            if sum(map(len, waiting)) >= ROWS_OF_A_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    content: bytes = sink.getvalue().to_pybytes()
    return content
