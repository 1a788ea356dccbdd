"""The faults' own checks find what they look for, and each kind of fault still runs."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.faults.kills import killed
from tests.faults.page import PAGE, render
from tests.faults.processes import orphans, start
from tests.faults.work import WORKS, broken_files


def test_a_file_that_is_not_whole_is_found(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(100)}, tmp_path / "model.safetensors")
    (tmp_path / "outcome.json").write_text(json.dumps({"loss": 1.0}))
    assert broken_files(tmp_path) == []
    for name in ("model.safetensors", "outcome.json"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-5])
        assert [found.split(":")[0] for found in broken_files(tmp_path)] == [name]
        (tmp_path / name).rename(tmp_path / f".{name}.tmp")
        assert broken_files(tmp_path) == []
        (tmp_path / name).write_bytes(content)


def _leave_a_child(folder: Path) -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    (folder / "child").touch()
    time.sleep(100)


@pytest.mark.slow
@pytest.mark.linux
def test_a_process_that_is_left_behind_is_found_and_ended(tmp_path: Path) -> None:
    process = start(_leave_a_child, tmp_path, tmp_path / "printed")
    while not (tmp_path / "child").exists():
        time.sleep(0.1)
    process.kill()
    process.join()
    assert orphans(process) == 1
    assert orphans(process) == 0


@pytest.mark.slow
@pytest.mark.linux
def test_a_killed_work_is_equal_in_the_end(tmp_path: Path) -> None:
    found = {entry.metric: entry.values for entry in killed(WORKS["training msat"], 1, tmp_path)}
    assert found["whole"] == found["no_orphans"] == [1.0]
    assert set(found["equal"]) == {1.0}


def test_the_page_is_that_of_its_figures() -> None:
    assert PAGE.read_text("utf-8") == render()
