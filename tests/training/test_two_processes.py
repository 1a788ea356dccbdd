"""Two processes share each batch, and are one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.training.conftest import TRAINING, theta_of

# 48 is a multiple of the batch size: of an incomplete last batch, accelerate gives two processes more than it holds.
SETTINGS = [
    *("--domain", "simple", "--sizes", "48", "--seeds", "3", "--num_test", "100", "--jobs", "1"),
    *("--max_steps", "60", "--checkpoint_steps", "20"),
]

# The script, which also notes what each process ends with. The second is the slower one when it saves.
NOTING = """
import os, runpy, sys, time
import accelerate.accelerator, strips_cell, torch
save = accelerate.accelerator.save_accelerator_state
def slowly(*arguments, **settings):
    time.sleep(0.5 * int(os.environ.get("RANK", 0)))
    return save(*arguments, **settings)
accelerate.accelerator.save_accelerator_state = slowly
torch.manual_seed(0)  # the order of the traces
outcome = strips_cell._outcome
def noting(cell, origin, model, *rest):
    torch.save(model.theta.detach(), f"{os.environ['NOTES']}.{os.environ.get('RANK', 0)}.pt")
    return outcome(cell, origin, model, *rest)
strips_cell._outcome = noting
runpy.run_path(os.environ["SCRIPT"], run_name="__main__")
"""


@pytest.mark.slow
def test_two_processes_are_one_run(tmp_path: Path):
    script = tmp_path / "noting.py"
    script.write_text(NOTING)

    def launch(name: str, *launcher: str) -> Path:
        folders = ["--output_dir", str(tmp_path / name), "--cards_dir", str(tmp_path / name / "cards")]
        done = subprocess.run(
            [sys.executable, *launcher, str(script), *SETTINGS, *folders],
            env={
                **os.environ,
                "ACCELERATE_USE_CPU": "true",
                "NOTES": str(tmp_path / name),
                "PYTHONPATH": str(TRAINING),
                "SCRIPT": str(TRAINING / "train_strips.py"),
            },
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        assert done.stdout.count("STRIPS Transformer: mean") == 1  # one table
        return tmp_path / name / "simple-48-redraw"

    together = launch("two", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    first, second = (torch.load(tmp_path / f"two.{rank}.pt") for rank in (0, 1))
    assert torch.equal(first, second)
    assert torch.equal(theta_of(together), first.clamp(0, 1))
    assert not list(together.glob("checkpoint-*"))
    assert_close(theta_of(launch("one")), first.clamp(0, 1), rtol=0, atol=1e-4)
