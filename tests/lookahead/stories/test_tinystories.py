"""TinyStories from a Hub on this machine: a stand-in with the same files, columns and splits."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_from_disk

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.grammar import stories
from hf_mech.lookahead.stories.tokens import load_tinystories, tokenize_stories
from tests.hub.local_hub import Blob, LocalHub, Repository

ROOT = Path(__file__).parents[3]
NAME = "roneneldan/TinyStories"
TRAIN = [story.text.replace(". ", ".\n\n", 2) for story in stories(0, 0, 30)]
VALIDATION = [story.text for story in stories(0, 0, 8, "test")]
CARD = """---
configs:
- config_name: default
  data_files:
  - {split: train, path: data/train-*}
  - {split: validation, path: data/validation-*}
---
"""
PROGRAM = """
import json, sys
from hf_mech.lookahead.stories.tokens import load_tinystories
try:
    load_tinystories(**json.loads(sys.argv[1])).save_to_disk(sys.argv[2])
except Exception as error:
    print(type(error).__name__, error, *getattr(error, "__notes__", ()))
"""


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as server:
        yield server


def publish(hub: LocalHub, files: dict[str, bytes]) -> None:
    """The files of a data set, large ones as LFS."""
    repository = hub.repositories["dataset", NAME] = Repository(NAME, private=False)
    repository.commit({path: Blob(data, lfs=not path.endswith(".md")) for path, data in files.items()}, "all files")


def parquet(texts: list[str], column: str = "text") -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table({column: texts}), target)
    return target.getvalue()


def load(hub: LocalHub, folder: Path, **arguments: str) -> str:
    """In a process of its own, for this one is offline; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments), str(folder / "splits")],
        env=hub.environment(folder / "home") | {"PYTHONPATH": str(ROOT), "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_edition_is_read_by_load_dataset(hub: LocalHub, tmp_path: Path, tokenizer) -> None:
    shards = [parquet([*TRAIN[:20], "", " \n"]), parquet(TRAIN[20:])]
    files = {f"data/train-0000{i}-of-00002-aa.parquet": shard for i, shard in enumerate(shards)}
    files["data/validation-00000-of-00001-bb.parquet"] = parquet(VALIDATION)
    publish(hub, files | {"README.md": CARD.encode(), "TinyStoriesV2-GPT4-train.txt": b"another edition"})
    assert load(hub, tmp_path) == ""
    splits = load_from_disk(tmp_path / "splits")
    assert {split: rows["text"][:] for split, rows in splits.items()} == {"train": TRAIN, "validation": VALIDATION}
    assert splits["train"].column_names == ["text"]
    tokens = tokenize_stories(splits["validation"], tokenizer)
    assert tokenizer.decode(tokens.rows[0]["input_ids"][:-1]) in VALIDATION


def test_the_second_edition_is_two_text_files(hub: LocalHub, tmp_path: Path) -> None:
    files = {
        "TinyStoriesV2-GPT4-train.txt": "".join(f"{text}\n<|endoftext|>\n" for text in ["", *TRAIN, "\n"]),
        "TinyStoriesV2-GPT4-valid.txt": "\n<|endoftext|>\n".join(VALIDATION) + "\n",  # no mark behind the last
    }
    publish(hub, {path: text.encode() for path, text in files.items()})
    assert load(hub, tmp_path, edition="gpt4") == ""
    splits = load_from_disk(tmp_path / "splits")
    assert {split: rows["text"][:] for split, rows in splits.items()} == {"train": TRAIN, "validation": VALIDATION}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"train": parquet(TRAIN)},
            "must have the splits train and validation, each with the column text, got {'train'",
        ),
        ({"train": parquet(TRAIN, "story"), "validation": parquet(TRAIN, "story")}, "got {'train': ['story']"),
        ({"train": parquet(TRAIN), "validation": parquet([" "])}, "'validation' of roneneldan/TinyStories holds no"),
    ],
)
def test_another_shape_is_refused(hub: LocalHub, tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    publish(hub, {f"data/{split}-00000-of-00001.parquet": data for split, data in files.items()})
    printed = load(hub, tmp_path)
    assert printed.startswith("LookaheadError ")
    assert said in printed
    assert not (tmp_path / "splits").exists()


@pytest.mark.parametrize("edition", ["first", "gpt4"])
def test_a_hub_without_it_names_the_grammar(hub: LocalHub, tmp_path: Path, edition: str) -> None:
    assert 'load_dataset("hf_mech/stories", "grammar")' in load(hub, tmp_path, edition=edition)


def test_an_unknown_edition_is_refused() -> None:
    with pytest.raises(LookaheadError, match="edition must be one of first, gpt4, got 'gpt3'"):
        load_tinystories(edition="gpt3")  # type: ignore[arg-type]
