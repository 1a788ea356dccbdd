"""Missing packages are named with the extra that installs them, and `import hf_mech` needs none of them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from hf_mech.control import MissingExtraError

ROOT = Path(__file__).parents[2]
MISSING = """
import sys

def said(what):
    try:
        what()
    except ImportError as error:
        print(type(error).__name__, error)

import hf_mech
print("loaded", sorted({"gymnasium", "vizdoom", "minari", "ray", "pygame"} & sys.modules.keys()))
sys.modules["gymnasium"] = None
said(lambda: __import__("hf_mech.control"))
del sys.modules["gymnasium"]
sys.modules["vizdoom"] = None
import hf_mech.control as control
control.make_environment("hf_mech/Rooms-v0").reset(seed=0)  # needs no engine
said(lambda: control.make_environment("hf_mech/MyWayHome-v0"))
from datasets import load_dataset
said(lambda: load_dataset("hf_mech/vizdoom_trajectories", "my_way_home-expert", cache_dir="data", num_proc=2))
"""


@pytest.mark.slow
def test_a_missing_package_names_its_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    code = MISSING.replace('"data"', repr(str(tmp_path / "data")))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missing = "MissingExtraError {0} is not installed. Run: pip install 'hf-mech[{1}]'"
    assert done.stdout.splitlines() == [
        "loaded []",
        missing.format("gymnasium", "control"),
        missing.format("vizdoom", "vizdoom"),
        missing.format("vizdoom", "vizdoom"),
    ]


def test_the_error_passes_from_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(MissingExtraError("minari", "minari")))
    assert str(error) == str(MissingExtraError("minari", "minari"))
