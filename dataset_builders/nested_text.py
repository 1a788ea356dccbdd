"""Texts with nesting, and a split that goes beyond training in one respect: JSON, and question formation.

    load_dataset("hf_mech/nested_text", "json", num_train=16_000)
    load_dataset("hf_mech/nested_text", "questions", split="beyond", seed=1)

The rows come from `hf_mech.languages.nested_text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.languages.nested_text import (
    DEEPEST,
    NESTED_TEXTS,
    SPLITS,
    TRAINED_DEPTH,
    NestedTextSettings,
    generate_rows,
)

from ._base import SeededConfig, ShardedBuilder

_DESCRIPTIONS = {
    "json": f"""\
JSON documents of up to 64 symbols. Those of train, validation and test are at most {TRAINED_DEPTH} deep, those of \
beyond {TRAINED_DEPTH + 1} to {DEEPEST}; they are as long. (Not of the paper.)""",
    "questions": """\
Sentences, and the questions that they become. Subjects with a relative clause are in training, but not in questions: \
either the first auxiliary may move, or the main one. In the split beyond the two rules differ.""",
    "questions_main": """\
The same as questions, but train has questions whose subject has a relative clause, so that only the main auxiliary \
may move.""",
}


@dataclass
class NestedTextConfig(SeededConfig, settings=NestedTextSettings):
    """One data set: a kind of text by its name."""


class NestedTexts(ShardedBuilder):
    """Splits `train`, `validation`, `test` and `beyond` with the columns

    - `text`: symbols with a space between them;
    - `depth`: of JSON, of its deepest brackets; of a sentence, 1 if its subject has a relative clause, else 0.
    """

    PAPER = "mccoy2020syntax"
    SPLITS = SPLITS
    BUILDER_CONFIG_CLASS = NestedTextConfig
    BUILDER_CONFIGS: ClassVar[list[NestedTextConfig]] = [NestedTextConfig(name=name) for name in NESTED_TEXTS]
    config: NestedTextConfig

    def describe(self) -> str:
        """The texts, and what the splits are."""
        return _DESCRIPTIONS[self.config.name]

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {"text": datasets.Value("string"), "depth": datasets.Value("int64")}

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.config.settings, split, shard)
