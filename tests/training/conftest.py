"""The scripts in training/, which are no package, and a cell of Table 1 that trains in a second or two."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState, PartialState
from safetensors.torch import load_file
from torch import Tensor

TRAINING = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="session")
def scripts() -> Iterator[Path]:
    """training/ on the path, as it is when one of its scripts runs."""
    sys.path.insert(0, str(TRAINING))
    yield TRAINING
    sys.path.remove(str(TRAINING))


@pytest.fixture(scope="session")
def strips_cell(scripts: Path) -> ModuleType:
    return importlib.import_module("strips_cell")


@pytest.fixture(scope="session")
def train_strips(scripts: Path) -> ModuleType:
    return importlib.import_module("train_strips")


@pytest.fixture(autouse=True)
def _leaves_no_trace() -> Iterator[None]:
    """What training sets for the whole process is set back."""
    yield
    torch.set_flush_denormal(False)
    AcceleratorState._reset_state()
    PartialState._reset_state()


@pytest.fixture(scope="session")
def cell(strips_cell: ModuleType) -> Any:
    """Four seeds on the smallest cell, measured so often and with so little patience that one of them is redrawn."""
    return replace(
        strips_cell.Cell("simple", 50),
        seeds=4,
        num_test=200,
        max_steps=900,
        eval_steps=100,
        redraw_after=200,
        checkpoint_steps=200,
    )


def theta_of(folder: Path) -> Tensor:
    """What a finished cell has saved, [members, heads, actions, 3]."""
    return load_file(folder / "model" / "model.safetensors")["theta"]
