"""Two processes share each batch, and are one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.training.strips.conftest import theta_of
from training.strips.experiment import EXPERIMENT

ROOT = EXPERIMENT.folder.parents[1]
# 48 is a multiple of the batch size: of an incomplete last batch, accelerate gives two processes more than it holds.
OPTIONS = [
    *("--domain", "simple", "--sizes", "48", "--num_seeds", "3", "--num_test", "100", "--jobs", "1"),
    *("--max_steps", "60", "--checkpoint_steps", "20"),
]
LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--standalone", "--nproc_per_node", "2"],
    "accelerate": [  # with --cpu it would start one process
        *("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"),
        *("--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"),
    ],
}

# `python -m training.train_strips`, which also notes the theta that each process ends with. The second process is the
# slower one when it saves, and each has other random numbers.
NOTING = """
import os, runpy, time
import accelerate.accelerator, torch
import training.strips.run as strips_run
rank = int(os.environ.get("RANK", 0))
save = accelerate.accelerator.save_accelerator_state
def slowly(*arguments, **settings):
    time.sleep(0.5 * rank)
    return save(*arguments, **settings)
accelerate.accelerator.save_accelerator_state = slowly
torch.manual_seed(rank)
outcome = strips_run._outcome
def noting(cell, origin, fit, *rest):
    torch.save(fit.model.theta.detach(), f"{os.environ['NOTES']}.{rank}.pt")
    return outcome(cell, origin, fit, *rest)
strips_run._outcome = noting
runpy.run_module("training.train_strips", run_name="__main__", alter_sys=True)
"""


def launch(root: Path, name: str, *launcher: str) -> Path:
    """Runs the command, and returns the cell's folder."""
    script = root / "noting.py"
    script.write_text(NOTING)
    folders = ["--output_dir", str(root / name), "--cards_dir", str(root / name / "cards")]
    module = ["-m", *launcher] if launcher else []
    done = subprocess.run(
        [sys.executable, *module, str(script), *OPTIONS, *folders],
        env={
            **os.environ,
            "ACCELERATE_USE_CPU": "true",
            "NOTES": str(root / name),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.count("paper's test") == 1  # one table
    (outcome,) = (root / name).glob("*/outcome.json")
    return outcome.parent


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> torch.Tensor:
    return theta_of(launch(tmp_path_factory.mktemp("alone"), "one"))


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_are_one_run(launcher: str, alone: torch.Tensor, tmp_path: Path):
    together = launch(tmp_path, "two", *LAUNCHERS[launcher])
    first, second = (torch.load(tmp_path / f"two.{rank}.pt") for rank in (0, 1))
    assert torch.equal(first, second)
    assert torch.equal(theta_of(together), first.clamp(0, 1))
    assert not list(together.glob("checkpoint-*"))
    assert_close(alone, first.clamp(0, 1), rtol=0, atol=1e-4)
