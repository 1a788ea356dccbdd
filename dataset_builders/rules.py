"""Texts with a rule each: whether the text is acceptable by the rule (Sec. 9.4 of the symbol processing paper).

    load_dataset("hf_mech/rules", "comments")
    load_dataset("hf_mech/rules", "comments", split="depth_4", seed=1, num_eval=200)
    load_dataset("hf_mech/rules", "comments", exceptions=True)  # certain words take a property away

The rows come from `hf_mech.programs.rules.formulas`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.programs.rules.formulas import SPLITS, RuleSettings, generate_rows

from ._base import SeededConfig, ShardedBuilder


@dataclass
class RulesConfig(SeededConfig, settings=RuleSettings):
    """One data set."""


class Rules(ShardedBuilder):
    """Training rules are at most 2 deep; `depth_3` and `depth_4` have deeper ones, `combinations` pairs not trained on.

    - `prompt`: the words of the text, a colon, and the rule;
    - `label`: 1 if the text is acceptable;
    - `truths`: for each of the properties A to D whether the text has it, for tests and not for training;
    - `depth`: of the rule.
    """

    PAPER = "smolensky2024mechanisms"
    SPLITS = SPLITS
    BUILDER_CONFIG_CLASS = RulesConfig
    BUILDER_CONFIGS: ClassVar[list[RulesConfig]] = [RulesConfig(name="comments")]
    config: RulesConfig

    def describe(self) -> str:
        """The task."""
        return (
            "Texts with a rule each: a formula over four properties, which certain words give to a text. Is the text "
            "acceptable by the rule?"
        )

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {
            "prompt": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["refused", "acceptable"]),
            "truths": datasets.List(datasets.Value("bool")),
            "depth": datasets.Value("int64"),
        }

    def tables(self, split: str, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.config.settings, split, shard)
