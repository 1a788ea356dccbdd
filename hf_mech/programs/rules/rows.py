"""Rows of texts with a rule each, and whether the text is acceptable by the rule (Sec. 9.4)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.rules.formulas import PROPERTIES, draw_formula, draw_text, truths_of

RULE = ":"
"""Stands between the text and its rule."""
DEPTHS = {"train": (0, 1, 2), "test": (0, 1, 2), "combinations": (1, 2), "depth_3": (3,), "depth_4": (4,)}
"""The depths of a split's rules, equally likely. Rules of `combinations`, and no other rule of these depths, join the
properties `HELD_OUT` directly."""
SPLITS = tuple(DEPTHS)
_BUCKETS, _TEST_BUCKETS = 10, 2  # rows by a checksum of their prompt: no prompt is in train and in test


@dataclass(frozen=True, slots=True)
class Example:
    """One row.

    Args:
        prompt: the words of the text, a colon, and the rule.
        label: 1 if the text is acceptable.
        truths: for every property whether the text has it.
        depth: of the rule.
    """

    prompt: str
    label: int
    truths: tuple[bool, ...]
    depth: int


@dataclass(frozen=True)
class RuleSettings:
    """The settings of a data set.

    Args:
        seed: of all rows; 0 or more.
        num_train, num_eval: rows of the training split, and of every other one.

    Raises:
        ProgramsError: a number out of its range.
    """

    seed: int = 0
    num_train: int = 20_000
    num_eval: int = 1_000

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_eval", 1)):
            check_whole(name, getattr(self, name), least, ProgramsError)

    def rows(self, split: str) -> int:
        """The number of rows of a split."""
        return self.num_train if split == "train" else self.num_eval


def generate(split: str, seed: int = 0, start: int = 0, stop: int = 1_000) -> Iterator[Example]:
    """The examples `start` to `stop - 1` of a split; each depends on split, seed and index alone. Half are acceptable.

    Raises:
        ProgramsError: there is no such split.

    Example:

    ```python
    >>> next(generate("depth_3")).depth
    3

    ```
    """
    if split not in DEPTHS:
        raise ProgramsError(f"The split must be one of {', '.join(SPLITS)}, got {split!r}.")
    for index in range(start, stop):
        yield _example(split, seed, index)


def _example(split: str, seed: int, index: int) -> Example:
    draws = Draws(f"rules/{split}/{seed}/{index}")
    depths = DEPTHS[split]
    depth, label = depths[draws.below(len(depths))], draws.below(2)
    while True:
        rule, text = draw_formula(draws, depth), draw_text(draws)
        prompt = " ".join([*text, RULE, *rule.words])
        truths = truths_of(text)
        if rule.holds(truths) == label and _belongs(split, prompt, rule.joins_held_out):
            return Example(prompt, label, tuple(truths[name] for name in PROPERTIES), depth)


def _belongs(split: str, prompt: str, joins_held_out: bool) -> bool:
    if split in ("depth_3", "depth_4"):
        return True
    if split == "combinations" or joins_held_out:
        return split == "combinations" and joins_held_out
    return (zlib.crc32(prompt.encode()) % _BUCKETS < _TEST_BUCKETS) == (split == "test")


def generate_rows(settings: RuleSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard; the same on every machine."""
    for table in tables_of(settings.rows(split), shard):
        examples = list(generate(split, settings.seed, table.start, table.stop))
        yield pa.table(
            {
                "prompt": [example.prompt for example in examples],
                "label": [example.label for example in examples],
                "truths": pa.array([list(example.truths) for example in examples], pa.list_(pa.bool_())),
                "depth": [example.depth for example in examples],
            }
        )
