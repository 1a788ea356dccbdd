"""A module ends with the process that started it, also while it is still busy at the start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "training.ends_with_parent", str(os.getpid()), "busy_from_the_start"])
print(child.pid, flush=True)
time.sleep(100)
"""


@pytest.mark.linux
def test_a_module_ends_with_its_parent_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "busy_from_the_start.py").write_text("import time; time.sleep(100)")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    child.wait(timeout=30)
