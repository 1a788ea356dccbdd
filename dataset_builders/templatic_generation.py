"""Templatic generation: prompts of k examples of a hidden template and a cue, and their completions (Sec. 4.2.1).

    load_dataset("hf_mech/templatic_generation", "1_shot_rlw")
    load_dataset("hf_mech/templatic_generation", "5_shot_rlw", split="test", seed=1)
    load_dataset("hf_mech/templatic_generation", "1_shot_eng", num_train=2_000, num_eval=200)

Above, the pure generator: `generate_rows(settings, split, shard)`, the same on every machine and for any number of
processes. Below, the `datasets` builder that wraps it. The prompts themselves come from `hf_mech.templatic.grammar`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa
from datasets.builder import Key

from hf_mech.local_datasets import NAMESPACE, code_hash
from hf_mech.templatic.errors import TaskError
from hf_mech.templatic.grammar import generate
from hf_mech.templatic.tasks import SPLITS, TASKS, task_named

# ------------------------------------------------------------------------------------------------ the pure generator

SHARDS = 16  # of each split: as many processes, DataLoader workers or nodes can share the work
ROWS_AT_A_TIME = 10_000  # what a table holds at most, so that memory does not grow with the data set

COLUMNS = ("prompt", "completion", "info")


@dataclass(frozen=True)
class TemplaticSettings:
    """What to draw.

    Args:
        task: the name of a task of Table 1.
        seed: of all prompts; 0 or more.
        num_train: training prompts, the first ones of the whole; None for all, see `Task.train`.
        num_eval: the most prompts of any other split, the first ones of the whole; None for all, see `Split.size`.

    Raises:
        TaskError: no such task, or a number out of its range.
    """

    task: str
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    def __post_init__(self) -> None:
        task_named(self.task)
        for name, value, least in (
            ("seed", self.seed, 0),
            ("num_train", self.num_train, 1),
            ("num_eval", self.num_eval, 1),
        ):
            optional = name != "seed"
            if value is None and optional:
                continue
            if type(value) is not int or value < least:
                raise TaskError(
                    f"{name} must be a whole number, {least} or more{', or None' if optional else ''}, got {value!r}."
                )

    def rows(self, split: str) -> int:
        """How many prompts the split has. Raises TaskError: there is no such split."""
        size = task_named(self.task).size(split)
        if split == "train":
            return size if self.num_train is None else self.num_train
        return size if self.num_eval is None else min(size, self.num_eval)


def generate_rows(settings: TemplaticSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, a block of neighbours in the split, as tables with the columns of the data set.

    Raises:
        TaskError: there is no such split.
    """
    total = settings.rows(split)
    end = total * (shard + 1) // SHARDS
    for first in range(total * shard // SHARDS, end, ROWS_AT_A_TIME):
        examples = generate(settings.task, split, settings.seed, first, min(first + ROWS_AT_A_TIME, end))
        rows = [(e.prompt, e.completion, e.info) for e in examples]
        yield pa.table({name: pa.array(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)})


# ------------------------------------------------------------------------------------------------------- the builder

VERSION = datasets.Version("1.0.0")

_DESCRIPTION = """\
{name}: prompts that show {shots} and ask to complete one more of the same hidden template, in symbols without a \
meaning. Training has templates of 1, 2 or 4 constituents of 1, 2 or 4 symbols; the ood splits have other words, other \
lengths or other numbers of constituents."""

_CITATION = """\
@article{smolensky2024mechanisms,
  title   = {Mechanisms of Symbol Processing for In-Context Learning in Transformer Networks},
  author  = {Smolensky, Paul and Fernandez, Roland and Zhou, Zhenghao Herbert and Opper, Mattia and Davies, Adam and
             Gao, Jianfeng},
  journal = {arXiv preprint arXiv:2410.17498},
  year    = {2024},
}
"""


@dataclass
class TemplaticGenerationConfig(datasets.BuilderConfig):
    """One data set: a task of Table 1 by its name.

    Args:
        seed, num_train, num_eval: see `TemplaticSettings`.
    """

    version: datasets.Version | str | None = VERSION
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    @property
    def settings(self) -> TemplaticSettings:
        """The config as the generator takes it. Raises TaskError for values out of range."""
        return TemplaticSettings(self.name, seed=self.seed, num_train=self.num_train, num_eval=self.num_eval)


class TemplaticGeneration(datasets.ArrowBasedBuilder):
    """The twelve splits of Table 1, with the columns

    - `prompt`: k examples and a cue, symbols with one space between them;
    - `completion`: the answer to the cue, up to and with the full stop;
    - `info`: JSON, see `hf_mech.templatic.grammar.Example`; echo prompts are those of the type `echo`.
    """

    VERSION = VERSION
    BUILDER_CONFIG_CLASS = TemplaticGenerationConfig
    BUILDER_CONFIGS: ClassVar[list[TemplaticGenerationConfig]] = [TemplaticGenerationConfig(name=n) for n in TASKS]
    config: TemplaticGenerationConfig

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        hash: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # What `load_dataset` passes: used directly, the builder has the same cache, and a new one after an edit.
        kwargs = {"repo_id": f"{NAMESPACE}/{__name__.rpartition('.')[2]}", **kwargs}
        super().__init__(cache_dir, dataset_name, config_name, hash or code_hash(__name__), *args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        shots = task_named(self.config.name).shots
        return datasets.DatasetInfo(
            description=_DESCRIPTION.format(
                name=self.config.name, shots="one example" if shots == 1 else f"{shots} examples"
            ),
            citation=_CITATION,
            license="apache-2.0",
            features=datasets.Features({name: datasets.Value("string") for name in COLUMNS}),
            version=self.VERSION,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        _ = self.config.settings  # before any process starts, so that an error reaches the user with its own type
        shards = list(range(SHARDS))
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split, "shards": shards}) for split in SPLITS]

    def _generate_tables(self, split: str, shards: list[int]) -> Iterator[tuple[Any, pa.Table]]:
        """The rows of some shards. A shard is a block of neighbours, so any number of processes keeps the order."""
        for position, shard in enumerate(shards):
            for index, table in enumerate(generate_rows(self.config.settings, split, shard)):
                yield Key(position, index), table
