"""Data sets are made by several processes also where these are not forked: Windows and macOS start new ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import multiprocessing, sys

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    import hf_mech
    from datasets import load_dataset

    options = {"split": "test", "num_train": 200, "num_test": 20}
    several = load_dataset("hf_mech/" + sys.argv[1], sys.argv[2], num_proc=2, cache_dir=sys.argv[3], **options)
    one = load_dataset("hf_mech/" + sys.argv[1], sys.argv[2], cache_dir=sys.argv[4], **options)
    assert several.to_list() == one.to_list()
    print(several.map(lambda row: {"more": 1}, num_proc=2)["more"][:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strips_traces simple", "star_graph g-2-5"])
def test_new_processes_make_the_same_rows(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # a new process reads it again
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), *name.split(), str(tmp_path / "several"), str(tmp_path / "one")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str([1] * 20)
