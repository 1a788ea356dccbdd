"""A pass over 500,000 steps adds no more memory than a pass over some: from disk and from a stream."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "trajectories.py"

PROGRAM = """
import runpy, sys
sys.path.insert(0, {folder!r})
benchmark = runpy.run_path({file!r})
steps, kind, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
benchmark["synthetic"](steps, place + "/cache", frame_size=(9, 16)).save_to_disk(place + "/rows")
print(benchmark["pass_over"](place + "/rows", kind, steps)["own_megabytes"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("steps", [20_000, 500_000])
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_memory_stays_flat(steps, kind, tmp_path):
    program = PROGRAM.format(folder=str(BENCHMARK.parent), file=str(BENCHMARK))
    done = subprocess.run(
        [sys.executable, "-c", program, str(steps), kind, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.splitlines()[-1]) < 8  # megabytes; the frames alone are 9 for 20,000 steps, raw
