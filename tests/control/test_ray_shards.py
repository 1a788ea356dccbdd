"""Shards made by a Ray cluster of two machines: the bytes of one process, also if one of the machines is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hf_mech.control.generation import TrajectorySettings, generate_with_ray, shard_bytes, shard_path, shards_of
from tests.control.squares import ID

ROOT = Path(__file__).parents[2]
SETTINGS = TrajectorySettings(ID, "noisy", num_train=64, num_test=16, options={"seconds": 0.005})

# In a process of its own: Ray starts many, and warns of much that is its own.
PROGRAM = """
import sys
from pathlib import Path
from hf_mech.control.generation import TrajectorySettings, generate_with_ray
from hf_mech.control.errors import ControlError
from tests.control.test_ray_shards import SETTINGS
from tests.two_machines import end, lose_when, two_machines

folder, lose = Path(sys.argv[1]), sys.argv[2] == "lose"
cluster, node = two_machines()
if lose:
    lose_when(cluster, node, lambda: bool(list(folder.glob("data/*.parquet"))), folder, "data/*.parquet")
generate_with_ray(SETTINGS, folder)
if not lose:
    try:
        generate_with_ray(TrajectorySettings("CartPole-v1", "expert", num_train=1, num_test=1), folder / "wrong")
    except ControlError as error:
        print("refused", type(error).__name__, flush=True)
end(cluster)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["keep", "lose"])
def test_two_machines_make_the_bytes_of_one_process(what, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "shards"), what],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    if what == "lose":
        (lost,) = re.findall(r"lost with (\d+) done", done.stdout)
        assert 0 < int(lost) < 32
    else:
        assert "refused ControlError" in done.stdout
    for split, shard in shards_of(SETTINGS):
        content = shard_path(tmp_path / "shards", split, shard).read_bytes()
        assert content == shard_bytes(SETTINGS, split, shard)


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hf-mech\[ray\]'"):
        generate_with_ray(SETTINGS, tmp_path)
