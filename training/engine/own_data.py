"""A data set of the user's in place of the generated one: its options, its columns, and the card of its runs.

    @dataclass(frozen=True, kw_only=True)
    class Run(OwnData):
        COLUMNS = {"prompt": str, "completion": str}
        GENERATED = ("task", "num_train")      # settings that choose among the generated data

The options are those of transformers' example scripts. A run asks `run.own_data` whether there is such a data set, and
takes `run.own_splits()`: `train` and `test`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import datasets

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.hub import measurement

from .card import Card, Checkpoint
from .run import Outcome
from .settings import AXIS, Settings, SettingsError, option
from .tables import Table

TEMPLATE = Path(__file__).with_suffix(".md")
READERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
"""The builders of `datasets` by a file's suffix."""
TEST_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class OwnData(Settings):
    """The base of settings whose run takes a data set of the user's.

    Attributes:
        COLUMNS: the columns that training reads, and the types of their values; `list` of anything.
        GENERATED: the settings that choose among the generated data.
    """

    COLUMNS: ClassVar[Mapping[str, type | tuple[type, ...]]] = {}
    GENERATED: ClassVar[Sequence[str]] = ()
    IN_LABELS: ClassVar[Sequence[str]] = ("dataset_name", "train_file")

    dataset_name: str | None = option("your data set in place of the generated one: a folder or a name", default=None)
    dataset_config_name: str | None = option("its configuration", default=None)
    train_file: str | None = option("or your training data: JSON lines, CSV or Parquet", default=None)
    test_file: str | None = option("test data; by default a tenth of the training data", default=None)
    columns: str | None = option("the names of its columns, such as prompt=question,completion=answer", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.own_data:
            given = [name for name in ("dataset_config_name", "test_file", "columns") if getattr(self, name)]
            if given:
                raise SettingsError(f"--{given[0]} goes with --dataset_name or --train_file.")
            return
        if self.dataset_name and (self.train_file or self.test_file):
            raise SettingsError("Give --dataset_name, or --train_file and --test_file; not both.")
        departures = self.departures
        for entry in fields(self):
            chosen = entry.name in departures
            if entry.metadata.get("role") == AXIS and entry.metadata["default"]:
                chosen = getattr(self, entry.name) not in entry.metadata["default"]
            if chosen and entry.name in self.GENERATED:
                name = entry.metadata.get("called") or entry.name
                raise SettingsError(f"--{name} is of the generated data and says nothing of your own; leave it out.")

    @property
    def own_data(self) -> str | None:
        """The data set's name or its file; None where the data is generated."""
        return self.dataset_name or self.train_file

    @property
    def labels(self) -> list[str]:
        if not self.own_data:
            return super().labels
        names = [entry.name for entry in fields(self) if entry.metadata.get("role") == AXIS]
        return [Path(self.own_data).stem, *(str(getattr(self, name)) for name in names if name not in self.GENERATED)]

    def own_splits(self) -> datasets.DatasetDict:
        """`train` and `test` with the columns of `COLUMNS`; a test split that is missing is cut from the other.

        Raises:
            SettingsError: the data cannot be read, is empty, or lacks a column.
        """
        loaded = self._loaded(streaming=False)
        if "train" not in loaded:
            raise SettingsError(f"{self.own_data} needs a split `train`, got {', '.join(map(str, loaded))}.")
        self._check(loaded)
        test = next((loaded[name] for name in ("test", "validation") if name in loaded), None)
        splits = {"train": loaded["train"], "test": test}
        names = {theirs: ours for ours, theirs in self._called.items()}
        renamed = {
            split: rows.select_columns(list(names)).rename_columns(names)
            for split, rows in splits.items()
            if rows is not None
        }
        both = renamed if test is not None else self.cut(renamed["train"])
        return datasets.DatasetDict({split: rows.flatten_indices() for split, rows in both.items()})

    def cut(self, rows: datasets.Dataset) -> Mapping[str, datasets.Dataset]:
        """`train` and `test`, a random tenth, of data without a test split.

        Raises:
            SettingsError: there is one row.
        """
        if len(rows) < 2:
            raise SettingsError(f"{self.own_data} needs two rows at least, for training and test, got {len(rows)}.")
        return rows.train_test_split(TEST_SHARE, seed=0)

    def check_own_data(self) -> None:
        """Reads the first row of each split. Raises SettingsError like `own_splits`."""
        if self.own_data:
            self._check(self._loaded(streaming=True))

    @property
    def _called(self) -> dict[str, str]:
        """The data set's name of each column."""
        named = dict(part.partition("=")[::2] for part in (self.columns or "").split(",") if part)
        if wrong := [name for name in named if name not in self.COLUMNS]:
            raise SettingsError(f"--columns names {', '.join(self.COLUMNS)}, got {', '.join(wrong)}: {self.columns}.")
        return {name: named.get(name, name) for name in self.COLUMNS}

    def _loaded(self, streaming: bool) -> Any:
        try:
            if self.dataset_name:
                return datasets.load_dataset(self.dataset_name, self.dataset_config_name, streaming=streaming)
            named = {"train": self.train_file, "test": self.test_file}
            files = {split: file for split, file in named.items() if file}
            return datasets.load_dataset(reader_of(list(files.values())), data_files=files, streaming=streaming)
        except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
            raise SettingsError(f"{self.own_data} cannot be read as a data set: {error}") from error

    def _check(self, splits: Mapping[str, Any]) -> None:
        for split, rows in splits.items():
            try:
                first = next(iter(rows), None)
            except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
                raise SettingsError(f"{self.own_data}, split {split}, cannot be read: {error}") from error
            if first is None:
                raise SettingsError(f"{self.own_data}, split {split}, has no rows.")
            called = self._called
            for name, kind in self.COLUMNS.items():
                if called[name] not in first:
                    raise SettingsError(
                        f"{self.own_data}, split {split}, has no column {called[name]}: expected "
                        f"{', '.join(called.values())}, got {', '.join(first)}. Name yours: --columns {name}=..."
                    )
                if not isinstance(first[called[name]], kind):
                    raise SettingsError(
                        f"{self.own_data}, split {split}: the column {called[name]} must hold values of type "
                        f"{_in_words(kind)}, got {first[called[name]]!r:.60}."
                    )


def _in_words(kind: type | tuple[type, ...]) -> str:
    return " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))


def reader_of(files: Sequence[str]) -> str:
    """The builder of `datasets` that reads the files.

    Raises:
        SettingsError: they are not of one kind.
    """
    found = {READERS.get(Path(file).suffix) for file in files}
    reader = found.pop()
    if found or reader is None:
        raise SettingsError(f"Files of your data are all of one kind, {', '.join(READERS)}; got {', '.join(files)}.")
    return reader


# ----------------------------------------------------------------------------------------------------------------- card


def own_card(experiment: str, paper: str, outcomes: Sequence[Outcome[Any]], checkpoint: Checkpoint) -> Card:
    """The card of runs on one data set of the user's; the checkpoint is that of the first run."""
    run = outcomes[0].settings
    measured = [
        measurement(Path(run.own_data).name, run.dataset_config_name, one.settings.to_dict(), name, [value])
        for one in outcomes
        for name, value in one.own_figures.items()
    ]
    return Card(
        name=f"{experiment}-{Path(run.own_data).stem}".replace("_", "-"),
        outcomes=outcomes,
        measured=measured,
        text={"experiment": experiment, "data": Path(run.own_data).name, "table": own_table(outcomes).markdown()},
        model_class=type(checkpoint.model).__name__,
        task="other",
        paper=paper,
        checkpoint=checkpoint,
    )


def own_table(outcomes: Sequence[Outcome[Any]]) -> Table:
    """A row a run: its figures and its time."""
    names = list(dict.fromkeys(name for one in outcomes for name in one.own_figures))
    table = Table(["run", *(f">{name}" for name in names), ">seconds"])
    for one in outcomes:
        cells = [f"{one.own_figures[name]:.4g}" if name in one.own_figures else "" for name in names]
        table.rows.append([one.settings.name, *cells, f"{one.seconds:.0f}"])
    return table
