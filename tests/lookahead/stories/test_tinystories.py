"""TinyStories from a Hub on this machine: a stand-in with the same files, columns and splits."""

from __future__ import annotations

import io
import json
import subprocess
import sys
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
for name, arguments in json.loads(sys.argv[1]).items():
    try:
        load_tinystories(**arguments).save_to_disk(name)
    except Exception as error:
        print(json.dumps([name, " ".join([type(error).__name__, str(error), *getattr(error, "__notes__", ())])]))
"""
OTHER_SHAPES = {
    "without-validation": {"train": ("text", TRAIN)},
    "without-text": {"train": ("story", TRAIN), "validation": ("story", TRAIN)},
    "blank": {"train": ("text", TRAIN), "validation": ("text", [" "])},
}
ARGUMENTS = {
    "first": {},
    "second": {"edition": "gpt4"},
    "nobody-first": {"name": "nobody/TinyStories"},
    "nobody-gpt4": {"name": "nobody/TinyStories", "edition": "gpt4"},
} | {shape: {"name": f"someone/{shape}"} for shape in OTHER_SHAPES}


def publish(hub: LocalHub, name: str, files: dict[str, bytes]) -> None:
    """The files of a data set, large ones as LFS."""
    repository = hub.repositories["dataset", name] = Repository(name, private=False)
    repository.commit({path: Blob(data, lfs=not path.endswith(".md")) for path, data in files.items()}, "all files")


def parquet(texts: list[str], column: str = "text") -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table({column: texts}), target)
    return target.getvalue()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder with all that loads, and what the others raise, by name: one process, for this one is offline."""
    folder = tmp_path_factory.mktemp("tinystories")
    shards = [parquet([*TRAIN[:20], "", " \n"]), parquet(TRAIN[20:])]
    files = {f"data/train-0000{i}-of-00002-aa.parquet": shard for i, shard in enumerate(shards)}
    files["data/validation-00000-of-00001-bb.parquet"] = parquet(VALIDATION)
    texts = {
        "TinyStoriesV2-GPT4-train.txt": "".join(f"{text}\n<|endoftext|>\n" for text in ["", *TRAIN, "\n"]),
        "TinyStoriesV2-GPT4-valid.txt": "\n<|endoftext|>\n".join(VALIDATION) + "\n",  # no mark behind the last
    }
    with LocalHub() as hub:
        both = files | {path: text.encode() for path, text in texts.items()}
        publish(hub, NAME, both | {"README.md": CARD.encode()})
        for shape, splits in OTHER_SHAPES.items():
            parts = {split: parquet(texts, column) for split, (column, texts) in splits.items()}
            named = {f"data/{split}-00000-of-00001.parquet": data for split, data in parts.items()}
            publish(hub, f"someone/{shape}", named)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(ARGUMENTS)],
            env=hub.environment(folder / "home") | {"PYTHONPATH": str(ROOT), "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    return folder, dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("edition", ["first", "second"])
def test_both_editions_are_read(loaded: tuple[Path, dict[str, str]], edition: str, tokenizer) -> None:
    """The first by `load_dataset`, the second from two text files."""
    folder, raised = loaded
    assert edition not in raised
    splits = load_from_disk(folder / edition)
    assert {split: rows["text"][:] for split, rows in splits.items()} == {"train": TRAIN, "validation": VALIDATION}
    assert splits["train"].column_names == ["text"]
    tokens = tokenize_stories(splits["validation"], tokenizer)
    assert tokenizer.decode(tokens.rows[0]["input_ids"][:-1]) in VALIDATION


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("without-validation", "must have the splits train and validation, each with the column text, got {'train'"),
        ("without-text", "got {'train': ['story']"),
        ("blank", "'validation' of someone/blank holds no"),
    ],
)
def test_another_shape_is_refused(loaded: tuple[Path, dict[str, str]], shape: str, said: str) -> None:
    folder, raised = loaded
    assert raised[shape].startswith("LookaheadError ")
    assert said in raised[shape]
    assert not (folder / shape).exists()


@pytest.mark.slow
@pytest.mark.parametrize("edition", ["first", "gpt4"])
def test_a_hub_without_it_names_the_grammar(loaded: tuple[Path, dict[str, str]], edition: str) -> None:
    assert 'load_dataset("hf_mech/stories", "grammar")' in loaded[1][f"nobody-{edition}"]


def test_an_unknown_edition_is_refused() -> None:
    with pytest.raises(LookaheadError, match="edition must be one of first, gpt4, got 'gpt3'"):
        load_tinystories(edition="gpt3")  # type: ignore[arg-type]
