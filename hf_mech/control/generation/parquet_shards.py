"""A data set of episodes as Parquet files, one a shard, which `load_dataset(folder)` reads.

The bytes of a file depend on the settings alone (and on the versions of pyarrow and Pillow), so any process on any
machine may make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from hf_mech.control.generation.trajectories import TrajectorySettings
from hf_mech.control.seeds import Split
from hf_mech.data.shards import SHARDS
from hf_mech.hub.disk.files import replacing
from hf_mech.hub.disk.full_disk import check_writable

ROWS_OF_A_GROUP = 1_000  # at least, but for the last: what a reader has in memory at once


def shards_of(settings: TrajectorySettings) -> list[tuple[Split, int]]:
    """All shards, as split and number."""
    return [(split, shard) for split in settings.SPLITS for shard in range(SHARDS)]


def shard_path(folder: str | Path, split: Split, shard: int) -> Path:
    """The file of a shard."""
    return Path(folder) / "data" / f"{split}-{shard:05d}-of-{SHARDS:05d}.parquet"


def prepare(settings: TrajectorySettings, folder: str | Path) -> None:
    """Makes the folder, before work starts. Raises ControlError for wrong settings, OutputError for a wrong folder."""
    settings.check()
    check_writable(shard_path(folder, "train", 0).parent)


def shard_bytes(settings: TrajectorySettings, split: Split, shard: int) -> bytes:
    """The Parquet file of a shard. Raises what `TrajectorySettings.tables` raises."""
    sink = pa.BufferOutputStream()
    with pa.parquet.ParquetWriter(sink, settings.features().arrow_schema) as writer:
        for group in _groups(settings.tables(split, shard)):
            writer.write_table(group)
    return sink.getvalue().to_pybytes()


def write_shard(folder: str | Path, split: Split, shard: int, content: bytes) -> Path:
    """Writes the file of a shard. It is there whole or not at all."""
    path = shard_path(folder, split, shard)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_shards(settings: TrajectorySettings, folder: str | Path) -> Path:
    """Generates all shards in this process and writes them into the folder.

    Returns:
        The folder, for `load_dataset(str(folder))`.

    Raises:
        ControlError: see `TrajectorySettings`.
        OutputError: the folder cannot be written.
    """
    prepare(settings, folder)
    for split, shard in shards_of(settings):
        write_shard(folder, split, shard, shard_bytes(settings, split, shard))
    return Path(folder)


def _groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= ROWS_OF_A_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
