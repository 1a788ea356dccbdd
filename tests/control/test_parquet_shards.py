"""Parquet shards of a data set of episodes: loaded as they are, and whole or not there after a kill."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from hf_mech.control.errors import ControlError
from hf_mech.control.generation import TrajectorySettings, shard_bytes, shard_path, shards_of, write_shards
from hf_mech.control.recording import Recording, record
from hf_mech.control.rows import episodes_of
from hf_mech.hub.files import OutputError
from tests.control.squares import ID
from tests.control.test_episodes import same

ROOT = Path(__file__).parents[2]
SETTINGS = TrajectorySettings(ID, "noisy", num_train=24, num_test=5)


def test_the_files_are_the_recording(tmp_path):
    folder = write_shards(SETTINGS, tmp_path / "squares")
    loaded = load_dataset(str(folder))
    for split in ("train", "test"):
        rows = record(ID, "noisy", SETTINGS.episodes(split), split=split)
        assert loaded[split].features == rows.features
        assert loaded[split].with_format("arrow")[:].equals(rows.with_format("arrow")[:])
    streamed = load_dataset(str(folder), split="test", streaming=True)
    for one, other in zip(episodes_of(loaded["test"]), episodes_of(streamed), strict=True):
        assert same(one, other)


def test_shards_hold_whole_episodes(tmp_path):
    write_shards(SETTINGS, tmp_path)
    numbers = [set(pq.read_table(shard_path(tmp_path, "train", s))["episode"].to_pylist()) for s in range(16)]
    assert sorted(n for shard in numbers for n in shard) == list(range(24))


def test_row_groups_are_small(monkeypatch):
    monkeypatch.setattr("hf_mech.data.shards.ROWS_OF_A_GROUP", 20)
    content = pq.ParquetFile(io.BytesIO(shard_bytes(TrajectorySettings(ID, num_train=400), "train", 2)))
    sizes = [content.metadata.row_group(i).num_rows for i in range(content.num_row_groups)]
    assert len(sizes) > 3
    assert all(20 <= size < 60 for size in sizes[:-1])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_train": 0}, "num_train must be"),
        ({"num_test": 1.5}, "num_test must be"),
        ({"seed": -1}, "seed must be"),
        ({"policy": "best"}, "policy must be one of"),
        ({"policy": "noisy", "noise": 2}, "noise must be"),
    ],
)
def test_wrong_settings_are_refused(changes, said):
    with pytest.raises(ControlError, match=said):
        TrajectorySettings(**{"environment": ID, **changes})


def test_faults_come_before_files(tmp_path):
    with pytest.raises(ControlError, match="NoSuch-v0"):
        write_shards(TrajectorySettings("NoSuch-v0"), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_shards(TrajectorySettings(ID), tmp_path / "file")


def test_an_episode_without_an_end_leaves_no_shard(tmp_path, monkeypatch):
    monkeypatch.setattr(Recording, "max_steps", 3)
    monkeypatch.setattr(Recording.__init__, "__defaults__", (3,))
    with pytest.raises(ControlError, match="no end after 3 steps"):
        write_shards(TrajectorySettings(ID, "random", num_train=16), tmp_path)
    assert list(tmp_path.glob("data/*")) == []


PROGRAM = """
from hf_mech.control.generation import write_shards
from tests.control.test_parquet_shards import SETTINGS
while True:
    write_shards(SETTINGS, {folder!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_leaves_no_half_shard(kills, tmp_path):
    whole = {shard_path(tmp_path, *s).name: shard_bytes(SETTINGS, *s) for s in shards_of(SETTINGS)}
    for number in range(kills):
        folder = tmp_path / str(number)
        program = [sys.executable, "-c", PROGRAM.format(folder=str(folder))]
        with subprocess.Popen(program, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
            while process.poll() is None and not list(folder.glob("data/*")):
                time.sleep(0.005)
            time.sleep(0.011 * number)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        found = {path.name: path.read_bytes() for path in folder.glob("data/*.parquet")}
        assert found.items() <= whole.items()
