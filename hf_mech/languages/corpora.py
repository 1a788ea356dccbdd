"""Text corpora: a data set on the Hub, the user's files, or the sources of Python's standard library."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from datasets import load_dataset

STDLIB = "python_stdlib"
_NOT_PROGRAMS = {
    *("test", "tests", "idle_test", "site-packages", "dist-packages", "lib-dynload", "__pycache__"),
    *("encodings", "pydoc_data"),  # tables, and a manual as one string
}
_MACHINES_OWN = ("_sysconfigdata", "config-", "sitecustomize", "usercustomize")
_BUCKETS = ("validation", "test", *["train"] * 9, *["pretraining"] * 9)
_TEXT_COLUMNS = ("text", "sentence")


class CorpusError(ValueError):
    """A corpus that cannot be used: a split or a column is missing, or there is no text."""


@dataclass(frozen=True)
class Corpus:
    """Documents by split: `train`, `validation`, `test`, and optionally `pretraining`.

    Attributes:
        name: the data set's name, for results.
        config: its configuration; for the standard library, Python's version.
        splits: every split's documents, in reading order.
        digest: SHA-256 of the whole corpus; two machines with the same digest have the same corpus.
    """

    name: str
    config: str | None
    splits: dict[str, list[str]]
    digest: str

    @classmethod
    def of(cls, name: str, config: str | None, splits: dict[str, list[str]]) -> Corpus:
        """Checks the splits and computes the digest.

        Raises:
            CorpusError: if train, validation or test is missing or holds no text.
        """
        for split in ("train", "validation", "test"):
            if not any(document.strip() for document in splits.get(split, [])):
                raise CorpusError(
                    f"The corpus {name} has no text for the split {split!r}; expected documents for train, validation "
                    f"and test, got {', '.join(f'{len(d)} for {s}' for s, d in splits.items()) or 'none'}. Give every "
                    "split some text."
                )
        digest = hashlib.sha256()
        for split, documents in splits.items():
            for text in (split, *documents):
                encoded = text.encode()
                digest.update(b"%d:" % len(encoded) + encoded)
        return cls(name, config, splits, digest.hexdigest())


def stdlib_corpus(folder: Path | None = None, *, max_characters: int | None = None) -> Corpus:
    """The standard library's .py files: real, nested text that every machine has.

    A file's split depends only on a hash of its path: 1 in 20 goes to validation, 1 to test, 9 to training and 9 to
    pretraining. Tests, installed packages, data tables and files from the machine's own build are left out. Within a
    split the files are ordered by their hashes, so the beginning of a split is a fair sample.

    Args:
        folder: the library's folder; by default that of the running Python.
        max_characters: keep only this many first characters of `train`.

    Raises:
        CorpusError: if the folder has too few files to fill every split.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    found = []
    for path in folder.rglob("*.py"):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        if not _NOT_PROGRAMS.intersection(name.parts) and not any(p.startswith(_MACHINES_OWN) for p in name.parts):
            found.append((hashlib.sha256(str(name).encode()).hexdigest(), path))
    splits: dict[str, list[str]] = {split: [] for split in ("train", "validation", "test", "pretraining")}
    for key, path in sorted(found):
        with tokenize.open(path) as source:  # reads the encoding that the file declares
            text = source.read()
        if text.strip():
            splits[_BUCKETS[int(key, 16) % len(_BUCKETS)]].append(text)
    splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of(STDLIB, f"python-{platform.python_version()}", splits)


def hub_corpus(
    name: str, config: str | None = None, *, revision: str | None = None, max_characters: int | None = None
) -> Corpus:
    """A data set with the splits train, validation and test and a column `text` or `sentence`, by `load_dataset`.

    Every row that is not blank is a document, as usual for WikiText and PTB: a line, then EOS.

    Raises:
        CorpusError: if a split is missing or empty, or there is no column of text.
    """
    loaded = load_dataset(name, config, revision=revision)
    splits = {}
    for split, rows in loaded.items():
        column = next((column for column in _TEXT_COLUMNS if column in rows.column_names), None)
        if column is None:
            raise CorpusError(
                f"{name}, split {split!r}, has no column of text: expected {' or '.join(_TEXT_COLUMNS)}, got "
                f"{', '.join(rows.column_names)}. Rename the column, or write the text to files and use --train_file."
            )
        splits[str(split)] = [text for text in rows[column] if text.strip()]
    if "train" in splits:
        splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of(name, config, splits)


def file_corpus(files: Mapping[str, Sequence[str]], *, max_characters: int | None = None) -> Corpus:
    """Text files in UTF-8, each a document.

    Args:
        files: the files of every split.
        max_characters: keep only this many first characters of `train`.

    Raises:
        CorpusError: if a file does not exist or a split has no text.
    """
    splits = {}
    for split, paths in files.items():
        missing = [path for path in paths if not Path(path).is_file()]
        if missing:
            raise CorpusError(f"No such file for the split {split!r}: {', '.join(missing)}. Name files that exist.")
        splits[split] = [Path(path).read_text(encoding="utf-8") for path in paths]
    if "train" in splits:
        splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of("text", None, splits)


def beginning(documents: Iterable[str], max_characters: int | None) -> list[str]:
    """The first documents, at most `max_characters` in total; the last one is cut. None: all documents."""
    if max_characters is None:
        return list(documents)
    kept: list[str] = []
    for document in documents:
        if max_characters <= 0:
            break
        kept.append(document[:max_characters])
        max_characters -= len(document)
    return kept
