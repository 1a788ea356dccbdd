"""What holds for every test of an experiment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from accelerate.state import AcceleratorState, PartialState


@pytest.fixture(autouse=True)
def _leaves_no_trace() -> Iterator[None]:
    """What training sets for the whole process is set back."""
    yield
    torch.set_flush_denormal(False)
    AcceleratorState._reset_state()
    PartialState._reset_state()
