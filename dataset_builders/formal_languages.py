"""The tasks of `hf_mech.formal_languages` as data sets: short strings to train on, longer ones to test on.

    load_dataset("hf_mech/formal_languages", "reverse_string", seed=0, num_train=100_000)
    load_dataset("hf_mech/formal_languages", "solve_equation", max_train_length=20, max_test_length=60)

Above, the pure generator: `generate_rows(task, settings, split, shard)`, the same on every machine and for any number
of processes. Below, the `datasets` builder that wraps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import datasets
import numpy as np
import pyarrow as pa
from datasets.builder import Key
from numpy.typing import NDArray

from hf_mech.formal_languages.errors import DatasetSettingsError, check_whole
from hf_mech.formal_languages.task import Task, dice_for
from hf_mech.formal_languages.tasks import TASKS, task_named
from hf_mech.local_datasets import NAMESPACE, code_hash

# ------------------------------------------------------------------------------------------------ the pure generator

SHARDS = 16  # of each split: as many processes, DataLoader workers or nodes can share the work
ROWS_AT_A_TIME = 10_000  # what a table holds at most, so that memory does not grow with the data set

Split = Literal["train", "test"]


@dataclass(frozen=True)
class FormalLanguageSettings:
    """What to draw from a task; the defaults are the paper's lengths.

    Args:
        seed: of all examples; 0 or more.
        num_train: training examples, each of a length uniform among the task's up to `max_train_length`. Short strings
            are few, so they come more than once.
        num_test: test examples; the task's lengths from `max_train_length + 1` to `max_test_length` come in turn, so
            each has as many (the default: 512 where there are 60 lengths).
        max_train_length: the longest input to train on. Test inputs are longer, so no example is in both splits.
        max_test_length: the longest input to test on.

    Raises:
        DatasetSettingsError: a number out of its range, or no length left to test on.
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 30_720
    max_train_length: int = 40
    max_test_length: int = 100

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 1, "max_test_length": 2}
        for name, low in least.items():
            check_whole(name, getattr(self, name), low, DatasetSettingsError)
        if self.max_test_length <= self.max_train_length:
            raise DatasetSettingsError(
                "Test inputs are longer than all training inputs, so max_test_length must be above max_train_length, "
                f"got {self.max_test_length} and {self.max_train_length}."
            )

    def rows(self, split: Split) -> int:
        """How many examples the split has."""
        return self.num_train if split == "train" else self.num_test

    def lengths(self, task: Task, split: Split) -> Sequence[int]:
        """The lengths of the split's inputs. Raises TaskError: the task has none in that range."""
        if split == "train":
            return task.lengths(1, self.max_train_length)
        return task.lengths(self.max_train_length + 1, self.max_test_length)


def generate_rows(task: Task, settings: FormalLanguageSettings, split: Split, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, a block of neighbours in the split, as tables with the columns of the data set.

    Raises:
        TaskError: the task has no example of the split's lengths.
    """
    lengths = np.asarray(settings.lengths(task, split))
    dice = dice_for(task.name, split, settings.seed, shard)
    total = settings.rows(split)
    end = total * (shard + 1) // SHARDS
    for first in range(total * shard // SHARDS, end, ROWS_AT_A_TIME):
        rows = np.arange(first, min(first + ROWS_AT_A_TIME, end))
        chosen = dice.below(len(lengths), rows.shape) if split == "train" else rows % len(lengths)
        order = np.argsort(chosen, kind="stable")
        drawn = [
            _table(*task.sample(dice, int(lengths[index]), int(count)))
            for index, count in zip(*np.unique(chosen, return_counts=True), strict=True)
        ]
        yield pa.concat_tables(drawn).take(np.argsort(order, kind="stable"))


def _table(inputs: NDArray[np.int64], outputs: NDArray[np.int64], scored: NDArray[np.bool_]) -> pa.Table:
    return pa.table({"inputs": _lists(inputs), "outputs": _lists(outputs), "scored": _lists(scored)})


def _lists(rows: NDArray[Any]) -> pa.ListArray:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.reshape(-1)))


# ------------------------------------------------------------------------------------------------------- the builder

VERSION = datasets.Version("1.0.0")

_DESCRIPTION = """\
{name} ({level}): strings and what the task makes of them. Training inputs have up to {train} symbols, test inputs \
more than that, up to {test}, so that only a model that has found the rule is right on them."""

_CITATION = """\
@inproceedings{deletang2023neural,
  title     = {Neural Networks and the {Chomsky} Hierarchy},
  author    = {Del{\\'e}tang, Gr{\\'e}goire and Ruoss, Anian and Grau-Moya, Jordi and Genewein, Tim and Wenliang, Li
               Kevin and Catt, Elliot and Cundy, Chris and Hutter, Marcus and Legg, Shane and Veness, Joel and
               Ortega, Pedro A.},
  booktitle = {International Conference on Learning Representations},
  year      = {2023},
}
"""


@dataclass
class FormalLanguagesConfig(datasets.BuilderConfig):
    """One data set: a task by its name.

    Args:
        seed, num_train, num_test, max_train_length, max_test_length: see `FormalLanguageSettings`.
    """

    version: datasets.Version | str | None = VERSION
    seed: int = 0
    num_train: int = 100_000
    num_test: int = 30_720
    max_train_length: int = 40
    max_test_length: int = 100

    @property
    def settings(self) -> FormalLanguageSettings:
        """The config as the generator takes it. Raises DatasetSettingsError for values out of range."""
        return FormalLanguageSettings(
            seed=self.seed,
            num_train=self.num_train,
            num_test=self.num_test,
            max_train_length=self.max_train_length,
            max_test_length=self.max_test_length,
        )


class FormalLanguages(datasets.ArrowBasedBuilder):
    """Splits `train` and `test` with the columns

    - `inputs`: the input, a list of ClassLabel over the task's input symbols;
    - `outputs`: the output, a list of ClassLabel over its output symbols;
    - `scored`: one for each output symbol, whether it counts; those that do not only fill the row.

    `hf_mech.formal_languages.DataCollatorForFormalLanguages` makes batches of them.
    """

    VERSION = VERSION
    BUILDER_CONFIG_CLASS = FormalLanguagesConfig
    BUILDER_CONFIGS: ClassVar[list[FormalLanguagesConfig]] = [FormalLanguagesConfig(name=name) for name in TASKS]
    config: FormalLanguagesConfig

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

    @property
    def task(self) -> Task:
        """The task behind the config."""
        return task_named(self.config.name)

    def _info(self) -> datasets.DatasetInfo:
        task, settings = self.task, self.config.settings
        features = {
            "inputs": datasets.List(datasets.ClassLabel(names=list(task.inputs))),
            "outputs": datasets.List(datasets.ClassLabel(names=list(task.outputs))),
            "scored": datasets.List(datasets.Value("bool")),
        }
        return datasets.DatasetInfo(
            description=_DESCRIPTION.format(
                name=task.name, level=task.level, train=settings.max_train_length, test=settings.max_test_length
            ),
            citation=_CITATION,
            license="apache-2.0",
            features=datasets.Features(features),
            version=self.VERSION,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        splits: tuple[Split, ...] = ("train", "test")
        for split in splits:  # before any process starts, so that an error reaches the user with its own type
            self.config.settings.lengths(self.task, split)
        shards = list(range(SHARDS))
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split, "shards": shards}) for split in splits]

    def _generate_tables(self, split: Split, shards: list[int]) -> Iterator[tuple[Any, pa.Table]]:
        """The rows of some shards. A shard is a block of neighbours, so any number of processes keeps the order."""
        for position, shard in enumerate(shards):
            for index, table in enumerate(generate_rows(self.task, self.config.settings, split, shard)):
                yield Key(position, index), table
