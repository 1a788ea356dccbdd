"""Templatic generation: k examples of a hidden template, a cue, its completion (Sec. 4.2.1 of symbol processing).

    load_dataset("hf_mech/templatic_generation", "1_shot_rlw")
    load_dataset("hf_mech/templatic_generation", "5_shot_rlw", split="test", seed=1)
    load_dataset("hf_mech/templatic_generation", "1_shot_eng", num_train=2_000, num_eval=200)

The rows come from `hf_mech.programs.templatic.grammar`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.programs.templatic.grammar import COLUMNS, TemplaticSettings, generate_rows
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, task_named

from ._base import SeededConfig, ShardedBuilder

_DESCRIPTION = """\
{name}: prompts that show {shots} and ask to complete one more of the same hidden template, in {words}. Training has \
templates of {counts} constituents of {lengths} symbols; the ood splits have other words, other lengths or other \
numbers of constituents."""


@dataclass
class TemplaticGenerationConfig(SeededConfig, settings=TemplaticSettings):
    """One data set: a task of `hf_mech.programs.templatic.tasks` by its name."""


class TemplaticGeneration(ShardedBuilder):
    """The twelve splits of Table 1, with the columns

    - `prompt`: k examples and a cue, symbols with one space between them;
    - `completion`: the answer to the cue, up to and with the full stop;
    - `info`: JSON, see `hf_mech.programs.templatic.grammar.Example`; echo prompts are those of the type `echo`.
    """

    PAPER = "smolensky2024mechanisms"
    SPLITS = tuple(SPLITS)
    BUILDER_CONFIG_CLASS = TemplaticGenerationConfig
    BUILDER_CONFIGS: ClassVar[list[TemplaticGenerationConfig]] = [TemplaticGenerationConfig(name=n) for n in TASKS]
    config: TemplaticGenerationConfig

    def describe(self) -> str:
        """The task, and what its prompts have."""
        task = task_named(self.config.name)
        return _DESCRIPTION.format(
            name=self.config.name,
            shots="one example" if task.shots == 1 else f"{task.shots} examples",
            words="English words" if task.vocabulary == "eng" else "random two-letter words",
            counts=_either(task.trained_counts),
            lengths=_either(task.trained_lengths),
        )

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {name: datasets.Value("string") for name in COLUMNS}

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.config.settings, split, shard)


def _either(numbers: Sequence[int]) -> str:
    """Such as `1, 2 or 4`."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last
