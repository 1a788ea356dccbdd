"""The base of all builders: takes rows from a pure generator, shard by shard; the cache's name depends on the code."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import datasets
import pyarrow as pa
from datasets.builder import Key
from datasets.table import table_cast

from hf_mech.data.cluster import call_all, connected
from hf_mech.data.local_datasets import NAMESPACE, code_hash
from hf_mech.data.shards import SHARDS, parquet_bytes, shard_file
from hf_mech.hub.bibliography import bibtex
from hf_mech.hub.files import HubError, check_writable, held, replacing, write_text_atomically

VERSION = datasets.Version("1.0.0")


@dataclass
class SeededConfig(datasets.BuilderConfig):
    """The name of a data set and the settings of its generator, with the argument names of `load_dataset`.

    A subclass names the generator's settings, a dataclass, and gets a field for each of them that has a default:

        @dataclass
        class RulesConfig(SeededConfig, settings=RuleSettings):
            ...

    It declares only the fields that the generator has not, or has with another default. A setting without a default is
    the name of the config.
    """

    SETTINGS: ClassVar[type[Any]]
    version: datasets.Version | str | None = VERSION

    def __init_subclass__(cls, settings: type[Any], without: tuple[str, ...] = (), **kwargs: Any) -> None:
        """Adds the fields, before `dataclass` reads them.

        Args:
            settings: of the generator.
            without: settings that `load_dataset` does not take.
        """
        super().__init_subclass__(**kwargs)
        cls.SETTINGS, types, own = settings, get_type_hints(settings), cls.__annotations__
        taken = {f.name: f.default for f in fields(settings) if f.init and f.default is not MISSING}
        missing = {name: default for name, default in taken.items() if name not in own and name not in without}
        for name, default in missing.items():
            setattr(cls, name, default)
        cls.__annotations__ = {**{name: types[name] for name in missing}, **own}

    @property
    def settings(self) -> Any:
        """The config as the generator takes it. Raises the generator's error for values out of range."""
        return self.SETTINGS(**self.values())

    def values(self) -> dict[str, Any]:
        """The generator's settings by name, as far as the config has them."""
        mine = {field.name for field in fields(self)}
        taken = [field for field in fields(self.SETTINGS) if field.init]
        named = {field.name: self.name for field in taken if field.default is field.default_factory is MISSING}
        return named | {field.name: getattr(self, field.name) for field in taken if field.name in mine - {*named}}


class ShardedBuilder(datasets.ArrowBasedBuilder):
    """A data set whose splits come from a generator, `SHARDS` shards each.

    A shard is a contiguous block of rows, so any number of processes, DataLoader workers or nodes keeps the order.

    Attributes:
        PAPER: the key of the paper to cite, in `hf_mech.hub.bibliography`.
        SPLITS: the names of the splits.
    """

    VERSION = VERSION
    PAPER: ClassVar[str]
    SPLITS: ClassVar[tuple[str, ...]] = ("train", "test")

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        hash: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # As in `load_dataset`: a builder used directly has the same cache, and a new one after an edit.
        module = type(self).__module__
        kwargs = {"repo_id": f"{NAMESPACE}/{module.rpartition('.')[2]}", **kwargs}
        super().__init__(cache_dir, dataset_name, config_name, hash or code_hash(module), *args, **kwargs)

    @abstractmethod
    def describe(self) -> str:
        """The description of the configuration."""

    @abstractmethod
    def features(self) -> dict[str, Any]:
        """The columns and their types."""

    def check(self) -> None:
        """Raises the generator's own error if the configuration has no rows."""
        _ = self.config.settings

    @abstractmethod
    def tables(self, split: Any, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard of one of `SPLITS`."""

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.describe(),
            citation=bibtex(self.PAPER),
            license="apache-2.0",
            features=datasets.Features(self.features()),
            version=self.VERSION,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        self.check()  # before any process starts, so that an error reaches the user with its own type
        shards = list(range(SHARDS))
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"split": split, "shards": shards}) for split in self.SPLITS
        ]

    def _generate_tables(self, split: str, shards: list[int]) -> Iterator[tuple[Any, pa.Table]]:
        for position, shard in enumerate(shards):
            for index, table in enumerate(self.tables(split, shard)):
                yield Key(position, index), table

    def write_parquet(self, folder: str | Path, *, ray: bool = False) -> Path:
        """Writes all rows as Parquet files, one a shard, which `load_dataset(folder)` reads without hf_mech.

        The bytes depend on the config, the code and the version of pyarrow alone. A file that is there is not made
        again, so an interrupted call goes on where it was.

        Args:
            folder: of this machine.
            ray: make the shards on the machines of a Ray cluster, which need hf_mech and share no disk; otherwise here.

        Returns:
            The folder.

        Raises:
            HubError: the folder holds another data set.
            ModuleNotFoundError: Ray is not installed.
            ClusterError: the machine or process of a shard was lost too often.
            OutputError: the folder cannot be written.
            ValueError: of the generator, if the configuration has no rows.
        """
        folder = Path(folder)
        shards = [(split.name, shard) for split in self._split_generators(None) for shard in split.gen_kwargs["shards"]]
        check_writable(folder / "data")
        with held(folder, wait=True), connected() if ray else nullcontext() as cluster:
            note, ours = folder / "made_by.json", {"name": self.repo_id, "config": self.config_id, "hash": self.hash}
            if note.exists() and (theirs := json.loads(note.read_text("utf-8"))) != ours:
                raise HubError(f"{folder} holds another data set, {theirs}, not {ours}. Remove it, or choose another.")
            write_text_atomically(note, json.dumps(ours, indent=1) + "\n")
            missing = [shard for shard in shards if not (folder / shard_file(*shard)).exists()]
            calls = ((shard_file(*shard), (self, *shard)) for shard in missing)
            here = ((name, parquet_of(*arguments)) for name, arguments in calls)
            with closing(call_all(cluster, parquet_of, calls, num_cpus=1) if ray else here) as results:
                for name, content in results:
                    with replacing(folder / name) as aside:
                        aside.write_bytes(content)
        return folder


def parquet_of(builder: ShardedBuilder, split: str, shard: int) -> bytes:
    """The Parquet file of a shard."""
    schema = builder.info.features.arrow_schema
    return parquet_bytes((table_cast(table, schema) for table in builder.tables(split, shard)), schema)


__all__ = ["VERSION", "SeededConfig", "ShardedBuilder"]
