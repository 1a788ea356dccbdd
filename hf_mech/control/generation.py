"""Trajectories as Parquet shards, made by one process, by many, or on a Ray cluster; the bytes are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa
import pyarrow.parquet

from hf_mech.control.episodes import MOST_EPISODES, Split
from hf_mech.control.errors import ControlError, MissingExtraError, check_whole
from hf_mech.control.policies import PolicyName, make_policy
from hf_mech.control.recording import Recording, environment_features
from hf_mech.data.shards import SHARDS
from hf_mech.hub.files import check_writable, replacing

# ----------------------------------------------------------------------------------------------------------------------
# The episodes of a data set, the same on every machine and with any number of processes.


@dataclass(frozen=True)
class TrajectorySettings:
    """The settings of a data set of episodes.

    Args:
        environment: the id of an environment, for `make_environment`.
        policy: "expert", "noisy" or "random".
        seed: of all episodes; 0 or more.
        num_train: training episodes.
        num_test: test episodes; no seed of an episode is in both splits.
        noise, hold: see `hf_mech.control.policies.make_policy`.
        options: of the environment.

    Raises:
        ControlError: a seed or a number of episodes out of its range; no such policy, or noise or hold out of its
            range.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train", "test")
    environment: str
    policy: PolicyName = "expert"
    seed: int = 0
    num_train: int = 1_000
    num_test: int = 100
    noise: float = 0.2
    hold: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)
        for name in ("num_train", "num_test"):
            check_whole(name, getattr(self, name), 1, MOST_EPISODES)
        make_policy(self.policy, self.noise, self.hold)

    def check(self) -> None:
        """Makes the environment and closes it.

        Raises:
            ControlError: it cannot be made; see `make_environment`.
        """
        self.features()

    def features(self) -> datasets.Features:
        """The columns and their types, as `hf_mech.control.rows` explains them."""
        return environment_features(self.environment, dict(self.options))

    def episodes(self, split: Split) -> int:
        """The number of episodes of a split."""
        return self.num_train if split == "train" else self.num_test

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one of `SHARDS` shards, whole episodes, one table each.

        Raises:
            ControlError: an episode that does not end.
        """
        episodes = self.episodes(split)
        numbers = range(episodes * shard // SHARDS, episodes * (shard + 1) // SHARDS)
        if numbers:  # an environment may take a second to start
            policy = make_policy(self.policy, self.noise, self.hold)
            schema = self.features().arrow_schema
            recording = Recording(self.environment, dict(self.options), policy, self.seed, split, schema)
            yield from recording.tables(numbers)


# ----------------------------------------------------------------------------------------------------------------------
# A data set of episodes as Parquet files, one a shard, which `load_dataset(folder)` reads.
#
# The bytes of a file depend on the settings alone (and on the versions of pyarrow and Pillow), so any process on any
# machine may make it.


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


# ----------------------------------------------------------------------------------------------------------------------
# A data set of episodes made on several machines, with Ray.
#
#     generate_with_ray(TrajectorySettings("hf_mech/MyWayHome-v0", num_train=8_000), "data/home", address="auto")
#
# Each shard is one task of Ray. Its bytes depend on the settings alone, so a task of a machine that is lost runs again
# on another one and gives the same file. The process that calls this writes the files; the machines share no disk.


RETRIES = 10  # of a shard whose machine or process is lost; not for ever, since a shard may be what kills it


def generate_with_ray(
    settings: TrajectorySettings, folder: str | Path, *, address: str | None = None, num_cpus: float = 1
) -> Path:
    """Generates all shards on the machines of a Ray cluster and writes them into a folder of this one.

    Every machine needs hf_mech with the environment's extra. An environment of your own is found there by an id that
    names its module, such as "my_package.my_module:MyEnvironment-v0".

    Args:
        settings: of the data set.
        folder: of this machine. A shard is there whole or not at all.
        address: of the cluster, as `ray.init` takes it; None makes a cluster of this machine alone. A connection that
            is open already is used instead, and stays open.
        num_cpus: the cores that a shard occupies.

    Returns:
        The folder, for `load_dataset(str(folder))`: the same files as `write_shards` makes.

    Raises:
        MissingExtraError: Ray is not installed.
        ControlError: as `TrajectorySettings`; or a shard failed, or its machine or process was lost too often. Whole
            shards stay.
        OutputError: the folder cannot be written.
    """
    ray = _ray()
    prepare(settings, folder)
    connects = not ray.is_initialized()
    if connects:
        ray.init(address=address)
    task = ray.remote(num_cpus=num_cpus, max_retries=RETRIES)(shard_bytes)
    # Files that wait to be written occupy Ray's memory, so they are written as they come.
    running: dict[Any, Any] = {task.remote(settings, *shard): shard for shard in shards_of(settings)}
    try:
        while running:
            (done, *_), _ = ray.wait(list(running))
            split, shard = running.pop(done)
            write_shard(folder, split, shard, _content(ray, done, f"Shard {shard} of {split!r}"))
    finally:
        for left in running:
            ray.cancel(left)
        if connects:
            ray.shutdown()
    return Path(folder)


def _content(ray: Any, done: Any, name: str) -> bytes:
    try:
        content: bytes = ray.get(done)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ControlError):
            raise cause from None
        raise ControlError(
            f"{name} could not be generated on the cluster: {cause or error!r}. Shards that are whole stay."
        ) from error
    return content


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", "ray") from error
    return ray
