"""A run that was killed and started again is the run that was not, bit for bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.training.conftest import TRAINING, theta_of

CHILD = """
import json, sys
from pathlib import Path
import torch
from strips_cell import Cell, train_cell
torch.set_num_threads(1)
torch.manual_seed(0)  # the order of the traces
train_cell(Cell(**json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def straight(strips_cell: ModuleType, cell: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """The cell trained in one go: its outcome and its folder."""
    folder = tmp_path_factory.mktemp("straight")
    torch.manual_seed(0)
    return strips_cell.train_cell(cell, folder), folder


def assert_same_run(outcome: Any, folder: Path, straight: tuple[Any, Path]) -> None:
    expected, where = straight
    assert torch.equal(theta_of(folder), theta_of(where))
    assert {**asdict(outcome), "seconds": 0} == {**asdict(expected), "seconds": 0}
    assert {path.name for path in folder.iterdir()} == {path.name for path in where.iterdir()}


def test_the_run_is_worth_comparing(straight: tuple[Any, Path], cell: Any):
    outcome, _ = straight
    assert sum(outcome.redraws) >= 1
    assert outcome.steps > 2 * cell.checkpoint_steps
    assert len(set(outcome.settled_at)) > 1


def test_stopped_and_started_again(strips_cell: ModuleType, cell: Any, straight: tuple[Any, Path], tmp_path: Path):
    assert strips_cell.train_cell(cell, tmp_path, stop_at=500) is None
    (checkpoint,) = tmp_path.glob("checkpoint-*")
    assert 400 <= int(checkpoint.name.split("-")[1]) < 410  # where the epoch ends
    torch.rand(100)  # the process that goes on has other random numbers
    torch.manual_seed(5)
    assert_same_run(strips_cell.train_cell(cell, tmp_path), tmp_path, straight)


def test_what_a_kill_left_half_written(strips_cell: ModuleType, cell: Any, straight: tuple[Any, Path], tmp_path: Path):
    strips_cell.train_cell(cell, tmp_path, stop_at=500)
    aside = tmp_path / "saving"
    aside.mkdir()
    for name in ("model.safetensors", "optimizer.bin", "custom_checkpoint_0.pkl"):
        (aside / name).write_bytes(b"half a fi")
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"half a fi")
    assert_same_run(strips_cell.train_cell(cell, tmp_path), tmp_path, straight)


def test_killed_and_started_again(strips_cell: ModuleType, cell: Any, straight: tuple[Any, Path], tmp_path: Path):
    folder = tmp_path / "cell"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(asdict(cell)), str(folder)],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(folder.glob("checkpoint-*")):
            assert child.poll() is None, child.communicate()[1]
            time.sleep(0.005)
        time.sleep(0.1)  # somewhere after the checkpoint
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert not (folder / "outcome.json").exists()
    assert_same_run(strips_cell.train_cell(cell, folder), folder, straight)


def test_a_finished_cell_is_not_trained_again(strips_cell: ModuleType, cell: Any, straight: tuple[Any, Path]):
    outcome, folder = straight
    files = [folder / "outcome.json", *(folder / "model").iterdir()]
    before = [file.stat().st_mtime_ns for file in files]
    assert strips_cell.train_cell(cell, folder) == outcome
    assert [file.stat().st_mtime_ns for file in files] == before


def test_another_cells_outcome_is_refused(strips_cell: ModuleType, cell: Any, straight: tuple[Any, Path]):
    with pytest.raises(FileExistsError, match=r"other settings.*Remove the folder or choose another --output_dir"):
        strips_cell.train_cell(replace(cell, learning_rate=0.5), straight[1])


def test_another_cells_checkpoint_is_refused(strips_cell: ModuleType, cell: Any, tmp_path: Path):
    strips_cell.train_cell(cell, tmp_path, stop_at=300)
    with pytest.raises(FileExistsError, match="other settings"):
        strips_cell.train_cell(replace(cell, learning_rate=0.5), tmp_path, stop_at=400)
