"""The rows of a data set of one task of Table 1; the prompts come from `hf_mech.programs.templatic.grammar`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import generate
from hf_mech.programs.templatic.tasks import task_named

COLUMNS = ("prompt", "completion", "info")


@dataclass(frozen=True)
class TemplaticSettings:
    """The settings of a data set.

    Args:
        task: the name of a task of Table 1.
        seed: of all prompts; 0 or more.
        num_train: the number of training prompts, the first of the split; None for all, see `Task.train`.
        num_eval: the maximum number of prompts of any other split, its first ones; None for all, see `Split.size`.

    Raises:
        ProgramsError: no such task, or a number out of its range.
    """

    task: str
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    def __post_init__(self) -> None:
        task_named(self.task)
        check_whole("seed", self.seed, 0, ProgramsError)
        check_whole("num_train", self.num_train, 1, ProgramsError, optional=True)
        check_whole("num_eval", self.num_eval, 1, ProgramsError, optional=True)

    def rows(self, split: str) -> int:
        """The number of prompts of the split. Raises ProgramsError: there is no such split."""
        size = task_named(self.task).size(split)
        if split == "train":
            return size if self.num_train is None else self.num_train
        return size if self.num_eval is None else min(size, self.num_eval)


def generate_rows(settings: TemplaticSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        ProgramsError: there is no such split.
    """
    for table in tables_of(settings.rows(split), shard):
        examples = generate(settings.task, split, settings.seed, table.start, table.stop)
        rows = [(e.prompt, e.completion, e.info) for e in examples]
        yield pa.table({name: pa.array(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)})
