"""The rows of a data set of stories of the grammar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead.stories.grammar import Split, StorySettingsError, stories


@dataclass(frozen=True)
class StorySettings:
    """The settings of a data set.

    Args:
        seed: of all stories; 0 or more.
        num_train: the training stories.
        num_test: the test stories; none of them has the hero, thing and place of a training story.

    Raises:
        StorySettingsError: a number out of its range.
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 1_000

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_test", 1)):
            check_whole(name, getattr(self, name), least, StorySettingsError)

    def rows(self, split: Split) -> int:
        """The number of stories of a split."""
        return self.num_train if split == "train" else self.num_test


def generate_rows(settings: StorySettings, split: Split, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the column `text`; the same on every machine."""
    for table in tables_of(settings.rows(split), shard):
        texts = [story.text for story in stories(settings.seed, table.start, table.stop, split)]
        yield pa.table({"text": pa.array(texts, pa.string())})
