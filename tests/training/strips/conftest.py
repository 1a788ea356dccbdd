"""A cell of Table 1 that trains in a second."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from training.engine import Job
from training.strips.experiment import StripsOptions
from training.strips.settings import Cell


@pytest.fixture(scope="session")
def cell() -> Cell:
    """Four seeds on the smallest cell, measured so often and with so little patience that one of them is redrawn."""
    overrides = {"num_test": 200, "max_steps": 900, "eval_steps": 100, "redraw_after": 200}
    return Cell.of("redraw", overrides, domain="simple", num_train=50, head_factor=1.0, data_seed=0, seeds="0..3")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(folder=tmp_path, options=StripsOptions(checkpoint_steps=200), origin={"command": "python -m …"})


def theta_of(folder: Path) -> Tensor:
    """The theta that a finished cell has saved, [members, heads, actions, 3]."""
    return load_file(folder / "model" / "model.safetensors")["theta"]
