"""Short stories for goal-conditioned generation (Section 5 of the Belief State Transformer), of a grammar of our own.

    load_dataset("hf_mech/stories", "grammar", seed=0, num_train=100_000, num_test=1_000)
    load_dataset("hf_mech/stories", "grammar", length="short")  # of 7 sentences

The stories come from `hf_mech.lookahead.stories.grammar`. TinyStories itself is
`hf_mech.lookahead.stories.tokens.load_tinystories`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.lookahead.stories.grammar import SPLITS, Split, StorySettings, generate_rows

from ._base import SeededConfig, ShardedBuilder

_DESCRIPTION = """\
Short stories with a beginning, a conflict and an end. The end repeats facts of the beginning and of the conflict. A \
middle written by a model joins a given suffix only if it introduces the right facts. No test story has the hero, \
thing and place of a training story."""


@dataclass
class StoriesConfig(SeededConfig, settings=StorySettings):
    """One data set of stories."""


class Stories(ShardedBuilder):
    """Splits `train` and `test` with the column `text`, as in TinyStories."""

    PAPER = "hu2025belief"
    SPLITS = SPLITS
    BUILDER_CONFIG_CLASS = StoriesConfig
    BUILDER_CONFIGS: ClassVar[list[StoriesConfig]] = [StoriesConfig(name="grammar")]
    config: StoriesConfig

    def describe(self) -> str:
        """The parts of a story, and the difference between the splits."""
        return _DESCRIPTION

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return {"text": datasets.Value("string")}

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return generate_rows(self.config.settings, split, shard)
