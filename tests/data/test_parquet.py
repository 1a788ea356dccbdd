"""Every data set as Parquet files, made here or on a Ray cluster, and shared out to two nodes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset, load_dataset_builder
from datasets.distributed import split_dataset_by_node

import hf_mech  # noqa: F401  (registers the data sets)
from hf_mech.data.local_datasets import local_dataset_names
from hf_mech.dataset_builders import _base
from hf_mech.hub.files import HubError

ROOT = Path(__file__).parents[2]
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "hf_mech/formal_languages": ("reverse_string", {"num_train": 50, "num_test": 60}),
    "hf_mech/nested_functions": ("rlw", {"num_train": 50, "num_eval": 10}),
    "hf_mech/nested_text": ("json", {"num_train": 50}),
    "hf_mech/rules": ("", {"num_train": 50, "num_eval": 10}),
    "hf_mech/star_graph": ("g-2-5", {"num_train": 50, "num_test": 10}),
    "hf_mech/stories": ("", {"num_train": 50, "num_test": 20}),
    "hf_mech/strips_traces": ("simple", {"num_train": 50, "num_test": 40}),
    "hf_mech/templatic_generation": ("1_shot_rlw", {"num_train": 50, "num_eval": 10}),
    "hf_mech/vizdoom_trajectories": (
        "my_way_home-random",
        {"num_train": 3, "num_test": 3, "frame_size": (12, 16), "hold": 8},
    ),
}


def builder_of(name: str) -> Any:
    config, settings = SMALL[name]
    return load_dataset_builder(name, config or None, **settings)


def rows_of(rows: Any) -> list[str]:
    return [str(row) for row in rows.decode(False)]


def test_the_data_sets_are_all() -> None:
    assert SMALL.keys() == set(local_dataset_names())


@pytest.mark.parametrize("name", SMALL)
def test_two_nodes_have_every_row_once(name: str) -> None:
    config, settings = SMALL[name]
    for rows in load_dataset(name, config or None, streaming=True, **settings).values():
        parts = [rows_of(split_dataset_by_node(rows, rank=rank, world_size=2)) for rank in (0, 1)]
        every = rows_of(rows)
        assert len(every) > 1
        assert min(map(len, parts)) > 0
        assert sorted([*parts[0], *parts[1]]) == sorted(every)


@pytest.mark.parametrize("name", SMALL)
def test_the_files_hold_the_rows(name: str, tmp_path: Path) -> None:
    builder = builder_of(name)
    rows = load_dataset(str(builder.write_parquet(tmp_path / "rows")), streaming=True)
    expected = builder.as_streaming_dataset()
    assert rows.keys() == expected.keys()
    for split, stream in expected.items():
        assert rows[split].features == stream.features
        assert rows_of(rows[split]) == rows_of(stream)


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, made = builder_of("hf_mech/star_graph"), []
    shard = _base.parquet_of

    def failing(builder: Any, split: str, number: int) -> bytes:
        made.append((split, number))
        if len(made) == 20:
            raise KeyboardInterrupt
        return shard(builder, split, number)

    monkeypatch.setattr(_base, "parquet_of", failing)
    with pytest.raises(KeyboardInterrupt):
        builder.write_parquet(tmp_path)
    assert len(list(tmp_path.rglob("*.parquet"))) == 19
    builder.write_parquet(tmp_path)
    assert len(made) == 33
    assert len(set(made)) == 32
    with pytest.raises(HubError, match="holds another data set"):
        load_dataset_builder("hf_mech/star_graph", "g-2-5", num_train=51).write_parquet(tmp_path)


PROGRAM = """
import sys
from pathlib import Path
from tests.data.test_parquet import SMALL, builder_of
from tests.two_machines import end, lose_when, two_machines

folder = Path(sys.argv[1])
cluster, node = two_machines()
lose_when(cluster, node, lambda: bool(list(folder.rglob("*.parquet"))), folder, "*/*/data/*.parquet")
for name in SMALL:
    builder_of(name).write_parquet(folder / name, ray=True)
end(cluster)
"""


@pytest.mark.slow
def test_a_cluster_makes_the_same_files(tmp_path: Path) -> None:
    """Two machines, one of which is lost."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "ray")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (lost,) = re.findall(r"lost with (\d+) done", done.stdout)
    assert 0 < int(lost) < 32
    for name in SMALL:
        folder = builder_of(name).write_parquet(tmp_path / "here" / name)
        files = sorted(path.relative_to(folder) for path in folder.rglob("*.*"))
        assert len(files) > 16
        for file in files:
            assert (folder / file).read_bytes() == (tmp_path / "ray" / name / file).read_bytes(), (name, file)
