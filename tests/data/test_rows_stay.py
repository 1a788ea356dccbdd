"""The rows of every data set are those that published figures were measured on, whatever moves in the code.

`python -m tests.data.test_rows_stay` writes rows.json anew: only after a change that is meant to change rows,
which is a new version of the data set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from datasets import get_dataset_config_names, load_dataset

import hf_mech  # noqa: F401  (registers the data sets)

PINNED = Path(__file__).with_name("rows.json")
SIZES: dict[str, dict[str, int]] = {
    "hf_mech/formal_languages": {},
    "hf_mech/nested_functions": {},
    "hf_mech/nested_text": {},
    "hf_mech/rules": {},
    "hf_mech/star_graph": {"num_train": 200},
    "hf_mech/stories": {"num_train": 200, "num_test": 50},
    "hf_mech/strips_traces": {"num_train": 60, "num_test": 40},
    "hf_mech/templatic_generation": {},
}
ROWS = 20  # of each split


def configs() -> Iterator[tuple[str, str]]:
    for name in SIZES:
        yield from (
            (name, config) for config in get_dataset_config_names(name) if config != "pddl"
        )  # of the user's files


def digest(name: str, config: str) -> str:
    """Of the first rows of each split."""
    options: dict[str, Any] = {} if config.startswith("theorem") or config == "parity" else SIZES[name]
    splits = load_dataset(name, config, streaming=True, **options)
    found = {split: list(islice(rows, ROWS)) for split, rows in splits.items()}
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()


@pytest.mark.slow
def test_rows_are_those_of_the_published_figures() -> None:
    assert {f"{name} {config}": digest(name, config) for name, config in configs()} == json.loads(PINNED.read_text())


if __name__ == "__main__":
    rows = {f"{name} {config}": digest(name, config) for name, config in configs()}
    PINNED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
