"""The rows of a data set; the prompts come from `hf_mech.programs.nested_functions.grammar`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.nested_functions.calls import split_named, vocabulary
from hf_mech.programs.nested_functions.grammar import generate

COLUMNS = ("prompt", "completion", "info")
_SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])


@dataclass(frozen=True)
class NestedFunctionSettings:
    """The settings of a data set.

    Args:
        config: the vocabulary, see `VOCABULARIES`.
        seed: of all prompts; 0 or more.
        num_train: the number of training prompts, the first of the split; None for all.
        num_eval: the maximum number of prompts of any other split, its first ones; None for all.

    Raises:
        ProgramsError: no such configuration, or a number out of its range.
    """

    config: str
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    def __post_init__(self) -> None:
        vocabulary(self.config, held_out=False)
        check_whole("seed", self.seed, 0, ProgramsError)
        check_whole("num_train", self.num_train, 1, ProgramsError, optional=True)
        check_whole("num_eval", self.num_eval, 1, ProgramsError, optional=True)

    def rows(self, split: str) -> int:
        """The number of prompts of the split. Raises ProgramsError: there is no such split."""
        size = split_named(split).size
        if split == "train":
            return size if self.num_train is None else self.num_train
        return size if self.num_eval is None else min(size, self.num_eval)


def generate_rows(settings: NestedFunctionSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        ProgramsError: there is no such split.
    """
    for table in tables_of(settings.rows(split), shard):
        examples = generate(settings.config, split, settings.seed, table.start, table.stop)
        yield pa.Table.from_pylist(
            [asdict(example) for example in examples], pa.schema([(c, "string") for c in COLUMNS])
        )
