"""TinyStories (Eldan & Li, 2023) from the Hugging Face Hub, in both of its editions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub import hf_hub_download

from hf_mech.lookahead.stories.errors import StoryCorpusError, StorySettingsError

TINYSTORIES = "roneneldan/TinyStories"
Edition = Literal["first", "gpt4"]

_SPLITS = {"train": "train", "validation": "valid"}  # the second edition's files have their own names
_END = "<|endoftext|>"


def load_tinystories(
    name: str = TINYSTORIES, *, edition: Edition = "first", revision: str | None = None
) -> DatasetDict:
    """The splits `train` and `validation` with the column `text`, without blank stories.

    Args:
        name: the data set on the Hub, or a copy of it.
        edition: `first`, the data set as `load_dataset` gives it; or `gpt4`, the two text files of the second edition,
            `TinyStoriesV2-GPT4-*.txt`, with about 2.7 million stories, the number in Section 5.
        revision: a commit or branch of the data set.

    Raises:
        StorySettingsError: there is no such edition.
        StoryCorpusError: a split or the column `text` is missing, or a split holds no story.
    """
    if edition not in get_args(Edition):
        raise StorySettingsError(f"edition must be one of {', '.join(get_args(Edition))}, got {edition!r}.")
    try:
        if edition == "first":
            found = load_dataset(name, revision=revision)
        else:
            found = DatasetDict({split: _second(name, split, revision) for split in _SPLITS})
    except OSError as error:
        error.add_note('Without the Hub, load_dataset("hf_mech/stories", "grammar") has stories with the same column.')
        raise
    splits = {}
    for split in _SPLITS:
        if split not in found or "text" not in found[split].column_names:
            shape = {key: rows.column_names for key, rows in found.items()}
            raise StoryCorpusError(
                f"{name} must have the splits train and validation, each with the column text, got {shape}. Name a "
                "data set of that shape, or rename its columns and splits."
            )
        splits[split] = found[split].select_columns("text").filter(_has_words, input_columns="text")
        if not len(splits[split]):
            raise StoryCorpusError(f"The split {split!r} of {name} holds no story; every row of it is blank.")
    return DatasetDict(splits)


def _second(name: str, split: str, revision: str | None) -> Dataset:
    file = f"TinyStoriesV2-GPT4-{_SPLITS[split]}.txt"
    path = hf_hub_download(name, file, repo_type="dataset", revision=revision)
    return Dataset.from_generator(_stories_in, gen_kwargs={"path": path}, split=split)


def _stories_in(path: str) -> Iterator[dict[str, str]]:
    """The stories of a file in which each one ends with a line of its own; a file of gigabytes is read line by line."""
    lines: list[str] = []
    with Path(path).open(encoding="utf-8") as source:
        for line in source:
            if line.strip() == _END:
                yield {"text": "".join(lines).strip()}
                lines = []
            else:
                lines.append(line)
    if any(line.strip() for line in lines):
        yield {"text": "".join(lines).strip()}


def _has_words(text: str) -> bool:
    return bool(text.strip())
