"""Trajectories as Parquet shards, made by one process, by many, or on a Ray cluster; the bytes are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.control.episodes import MOST_EPISODES, Split
from hf_mech.control.errors import check_whole
from hf_mech.control.policies import PolicyName, make_policy
from hf_mech.control.recording import Recording, environment_features
from hf_mech.data.cluster import call_all, connected
from hf_mech.data.shards import SHARDS, parquet_bytes, shard_file
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


def shards_of(settings: TrajectorySettings) -> list[tuple[Split, int]]:
    """All shards, as split and number."""
    return [(split, shard) for split in settings.SPLITS for shard in range(SHARDS)]


def shard_path(folder: str | Path, split: Split, shard: int) -> Path:
    """The file of a shard."""
    return Path(folder) / shard_file(split, shard)


def prepare(settings: TrajectorySettings, folder: str | Path) -> None:
    """Makes the folder, before work starts. Raises ControlError for wrong settings, OutputError for a wrong folder."""
    settings.check()
    check_writable(shard_path(folder, "train", 0).parent)


def shard_bytes(settings: TrajectorySettings, split: Split, shard: int) -> bytes:
    """The Parquet file of a shard. Raises what `TrajectorySettings.tables` raises."""
    return parquet_bytes(settings.tables(split, shard), settings.features().arrow_schema)


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


# ----------------------------------------------------------------------------------------------------------------------
# A data set of episodes made on several machines, with Ray.
#
#     generate_with_ray(TrajectorySettings("hf_mech/MyWayHome-v0", num_train=8_000), "data/home", address="auto")
#
# Each shard is one task of Ray. Its bytes depend on the settings alone, so a task of a machine that is lost runs again
# on another one and gives the same file. The process that calls this writes the files; the machines share no disk.


def generate_with_ray(
    settings: TrajectorySettings, folder: str | Path, *, address: str | None = None, num_cpus: float = 1
) -> Path:
    """Generates all shards on the machines of a Ray cluster and writes them into a folder of this one.

    Every machine needs hf_mech with the environment's extra. An environment of your own is found there by an id that
    names its module, such as "my_package.my_module:MyEnvironment-v0".

    Args:
        settings: of the data set.
        folder: of this machine. A shard is there whole or not at all.
        address: of the cluster, see `hf_mech.data.cluster.connected`.
        num_cpus: the cores that a shard occupies.

    Returns:
        The folder, for `load_dataset(str(folder))`: the same files as `write_shards` makes.

    Raises:
        ModuleNotFoundError: Ray is not installed.
        ControlError: as `TrajectorySettings`, or as `TrajectorySettings.tables`. Whole shards stay, here and below.
        ClusterError: the machine or process of a shard was lost too often.
        OutputError: the folder cannot be written.
    """
    shards = {f"shard {shard} of {split!r}": (split, shard) for split, shard in shards_of(settings)}
    with connected(address) as ray:
        prepare(settings, folder)
        calls = ((name, (settings, *shard)) for name, shard in shards.items())
        with closing(call_all(ray, shard_bytes, calls, num_cpus=num_cpus)) as results:
            for name, content in results:
                write_shard(folder, *shards[name], content)
    return Path(folder)
