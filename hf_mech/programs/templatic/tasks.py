"""The tasks of templatic generation: words, sizes, splits, and the sizes that the paper published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from hf_mech.programs.errors import ProgramsError

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


# ----------------------------------------------------------------------------------------------------------------------
# A prompt that is readable, and still breaks the grammar.


class GrammarWarning(UserWarning):
    """A readable prompt breaks one of the additional constraints of App. D."""


# ----------------------------------------------------------------------------------------------------------------------
# The symbols of prompts: random two-letter words, English words, special characters.


# Single special characters, as in (10): those of ASCII without the full stop (it ends an answer) and without quotation
# marks and backslash (text formats of data sets escape them).
DELIMITER_SYMBOLS: tuple[str, ...] = tuple("!#$%&()*+,-/:;<=>?@[]^_`{|}~")

HELD_OUT_EVERY = 4  # every fourth English word, in alphabetical order, is kept for ood_lexical

# Of english_words.txt. The names of data set caches depend on the code, so changed words need a new digest here.
ENGLISH_WORDS_SHA256 = "0bb6162245f60f22"


@cache
def words(vocabulary: Literal["rlw", "eng"], held_out: bool = False) -> tuple[str, ...]:
    """The words of constituents, in a fixed order.

    Args:
        vocabulary: `rlw`, all 676 sequences of two letters, or `eng`, the English words of `english_words.txt`.
        held_out: only the words of the split `ood_lexical` and of echo prompts: the upper-case sequences, or a quarter
            of the English words.
    """
    if vocabulary == "rlw":
        pairs = tuple(map("".join, product(ascii_lowercase, repeat=2)))
        return tuple(pair.upper() for pair in pairs) if held_out else pairs
    english = files("hf_mech.programs.templatic").joinpath("english_words.txt").read_text(encoding="utf-8").split()
    return tuple(w for i, w in enumerate(english) if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out)


# ----------------------------------------------------------------------------------------------------------------------
# The tasks and splits of Table 1, as data.
#
# The paper gives one size: "approximately 280,000" training prompts, and ten times that for `1_shot_rlw_10x`. The other
# sizes are ours. They follow the published files' sizes in bytes: train is 8 times as large as dev and as test, and 33
# times as large as each `ood_*` split.


TRAINED = (1, 2, 4)  # numbers of constituents, and of symbols in a constituent, in Table 1's train splits


@dataclass(frozen=True)
class Task:
    """One task: those of Table 1, and reduced ones.

    Args:
        name: as in Table 1; `1_shot_small` and `1_shot_single` are reduced.
        shots: k, the examples before the cue.
        vocabulary: `rlw`, random two-letter words, or `eng`, English words.
        train: the number of training prompts, including echo prompts.
        trained_counts: the numbers of constituents in the train split.
        trained_lengths: the numbers of symbols in a constituent there.
        num_words: only the first words of the vocabulary; None: all.
    """

    name: str
    shots: int
    vocabulary: Literal["rlw", "eng"] = "rlw"
    train: int = 280_000
    trained_counts: tuple[int, ...] = TRAINED
    trained_lengths: tuple[int, ...] = TRAINED
    num_words: int | None = None

    def counts(self, split: Split) -> tuple[int, ...]:
        """The possible numbers of constituents in a template, equally likely."""
        return self.trained_counts if split.counts == TRAINED else split.counts

    def lengths(self, split: Split) -> tuple[int, ...]:
        """The possible numbers of symbols in a constituent, equally likely."""
        return self.trained_lengths if split.lengths == TRAINED else split.lengths

    def words(self, held_out: bool) -> tuple[str, ...]:
        """The words of constituents, see `words`."""
        return words(self.vocabulary, held_out)[: self.num_words]

    def size(self, split: str) -> int:
        """The number of prompts of a split. Raises ProgramsError: there is no such split."""
        return self.train if split == "train" else split_named(split).size


@dataclass(frozen=True)
class Split:
    """One split of Table 1.

    Args:
        name: as in Table 1.
        size: the number of prompts; for `train`, see `Task.train`.
        counts: the possible numbers of constituents in a template, equally likely; those trained are the task's.
        lengths: the possible numbers of symbols in a constituent, equally likely; those trained are the task's.
        held_out: whether the words are the held-out ones; in training only echo prompts use them.
    """

    name: str
    size: int
    counts: tuple[int, ...] = TRAINED
    lengths: tuple[int, ...] = TRAINED
    held_out: bool = False

    @property
    def short_name(self) -> str:
        """The head of its column in a table.

        >>> [split_named(name).short_name for name in ("dev", "ood_lexical", "ood_cons_len_3", "ood_cons_count_10")]
        ['dev', 'lexical', 'length 3', 'count 10']
        """
        return self.name.removeprefix("ood_").replace("cons_len_", "length ").replace("cons_count_", "count ")


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("1_shot_rlw", 1),
        Task("2_shot_rlw", 2),
        Task("3_shot_rlw", 3),
        Task("5_shot_rlw", 5),
        Task("10_shot_rlw", 10),
        Task("1_shot_eng", 1, "eng"),
        Task("1_shot_rlw_10x", 1, train=2_800_000),
        # Not in the paper: smaller, for small models on one core. `small` still asks which constituents a template has
        # taken, and in which order; `single` has one constituent, which is copied with or without what is around it.
        Task("1_shot_small", 1, trained_counts=(1, 2), trained_lengths=(1, 2), num_words=64),
        Task("1_shot_single", 1, trained_counts=(1,), num_words=80),
    )
}

SPLITS: Mapping[str, Split] = {
    split.name: split
    for split in (
        Split("train", 280_000),
        Split("dev", 35_000),
        Split("test", 35_000),
        Split("ood_lexical", 8_400, held_out=True),
        *(Split(f"ood_cons_len_{n}", 8_400, lengths=(n,)) for n in (3, 5, 7, 10)),
        *(Split(f"ood_cons_count_{n}", 8_400, counts=(n,)) for n in (3, 5, 7, 10)),
    )
}


def task_named(name: str) -> Task:
    """The task of that name. Raises ProgramsError: there is none."""
    if name not in TASKS:
        raise ProgramsError(f"The task must be one of {', '.join(TASKS)}, got {name!r}.")
    return TASKS[name]


def split_named(name: str) -> Split:
    """The split of that name. Raises ProgramsError: there is none."""
    if name not in SPLITS:
        raise ProgramsError(f"The split must be one of {', '.join(SPLITS)}, got {name!r}.")
    return SPLITS[name]


# ----------------------------------------------------------------------------------------------------------------------
# The authors' own data set on the Hub, with the columns of `hf_mech/templatic_generation`.


PUBLISHED = "microsoft/templatic_generation_tasks"  # the paper's note 9
# Our name first, then the column name in the authors' testing code.
_COLUMNS = {"prompt": ("prompt", "text"), "completion": ("completion", "label"), "info": ("info", "annotation")}


def load_published(task: str, path: str = PUBLISHED, **kwargs: Any) -> Dataset | DatasetDict:
    """A task of the published data set.

    Args:
        task: its name in Table 1.
        path: the data set on the Hub, or a folder with a copy of it.
        kwargs: for `datasets.load_dataset`, such as `split="test"` or `streaming=True`.

    Returns:
        The result of `load_dataset`, with the columns `prompt`, `completion` and `info`.

    Raises:
        ProgramsError: no such task, or a data set with other columns.
    """
    from datasets import load_dataset

    rows = load_dataset(path, task_named(task).name, **kwargs)
    first = next(iter(rows.values())) if isinstance(rows, dict) else rows
    names = first.column_names
    renamed = {}
    for ours, theirs in _COLUMNS.items():
        found = [name for name in theirs if name in names]
        if not found:
            raise ProgramsError(
                f"The data set {path!r} must have a column {' or '.join(theirs)}, got {', '.join(names)}."
            )
        if found[0] != ours:
            renamed[found[0]] = ours
    return rows.rename_columns(renamed).select_columns(list(_COLUMNS))
