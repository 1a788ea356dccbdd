"""The tasks of `hf_mech.languages` as data sets: short strings for training, longer ones for testing.

    load_dataset("hf_mech/formal_languages", "reverse_string", seed=0, num_train=100_000)
    load_dataset("hf_mech/formal_languages", "solve_equation", max_train_length=20, max_test_length=60)

The rows come from `hf_mech.languages.rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.languages.rows import FormalLanguageSettings, Split, generate_rows
from hf_mech.languages.task import Task
from hf_mech.languages.tasks import TASKS, task_named

from ._base import SeededConfig, ShardedBuilder

_DESCRIPTION = """\
{name} ({level}): strings and what the task makes of them. Training inputs have up to {train} symbols, test inputs \
more than that, up to {test}, so that only a model that has found the rule is right on them."""


@dataclass
class FormalLanguagesConfig(SeededConfig, settings=FormalLanguageSettings):
    """One data set: a task by its name."""


class FormalLanguages(ShardedBuilder):
    """Splits `train` and `test` with the columns

    - `inputs`: the input, a list of ClassLabel over the task's input symbols;
    - `outputs`: the output, a list of ClassLabel over its output symbols;
    - `scored`: one for each output symbol, whether it counts; the others only fill the row.

    `hf_mech.languages.DataCollatorForFormalLanguages` makes batches of them.
    """

    PAPER = "deletang2023neural"
    BUILDER_CONFIG_CLASS = FormalLanguagesConfig
    BUILDER_CONFIGS: ClassVar[list[FormalLanguagesConfig]] = [FormalLanguagesConfig(name=name) for name in TASKS]
    config: FormalLanguagesConfig

    @property
    def task(self) -> Task:
        """The task behind the config."""
        return task_named(self.config.name)

    def describe(self) -> str:
        """The task, its level and its lengths."""
        task, settings = self.task, self.config.settings
        return _DESCRIPTION.format(
            name=task.name, level=task.level, train=settings.max_train_length, test=settings.max_test_length
        )

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {
            "inputs": datasets.List(datasets.ClassLabel(names=list(self.task.inputs))),
            "outputs": datasets.List(datasets.ClassLabel(names=list(self.task.outputs))),
            "scored": datasets.List(datasets.Value("bool")),
        }

    def check(self) -> None:
        """Raises LanguagesError if the task has no example of a split's lengths."""
        for split in self.SPLITS:
            self.config.settings.lengths(self.task, split)

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.task, self.config.settings, split, shard)
