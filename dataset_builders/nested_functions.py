"""Nested function evaluation: definitions and an expression, and every step to its value (Sec. 9.3.1).

    load_dataset("hf_mech/nested_functions", "rlw")
    load_dataset("hf_mech/nested_functions", "small", split="ood_depth_4", seed=1)
    load_dataset("hf_mech/nested_functions", "single", split="train")  # one function a prompt
    load_dataset("hf_mech/nested_functions", "small", num_train=50_000, num_eval=200)

The rows come from `hf_mech.programs.nested_functions.grammar`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.programs.nested_functions.calls import SPLITS, VOCABULARIES, vocabulary
from hf_mech.programs.nested_functions.grammar import COLUMNS, NestedFunctionSettings, generate_rows

from ._base import SeededConfig, ShardedBuilder

_DESCRIPTION = """\
{words} two-letter words: prompts that define functions of symbols and ask for the value of an expression; completions \
show every step. Training has calls in calls to depth 2; the ood splits have other words, deeper calls, longer or more \
arguments, more definitions, or calls in the bodies of definitions."""


@dataclass
class NestedFunctionConfig(SeededConfig, settings=NestedFunctionSettings):
    """One data set: a vocabulary by its name."""


class NestedFunctions(ShardedBuilder):
    """Splits by what they ask beyond training, with the columns

    - `prompt`: definitions, an expression and an arrow, words with one space between them;
    - `completion`: the steps to the value of the expression;
    - `info`: JSON, see `hf_mech.programs.nested_functions.grammar.Example`.
    """

    PAPER = "smolensky2024mechanisms"
    SPLITS = tuple(SPLITS)
    BUILDER_CONFIG_CLASS = NestedFunctionConfig
    BUILDER_CONFIGS: ClassVar[list[NestedFunctionConfig]] = [NestedFunctionConfig(name=n) for n in VOCABULARIES]
    config: NestedFunctionConfig

    def describe(self) -> str:
        """The vocabulary's size, and what the splits are."""
        return _DESCRIPTION.format(words=len(vocabulary(self.config.name, held_out=False)))

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {name: datasets.Value("string") for name in COLUMNS}

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.config.settings, split, shard)
