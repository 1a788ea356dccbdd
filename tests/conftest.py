"""What holds for every test: no network, one thread, caches of its own.

The environment is set before any Hugging Face library is imported, because they read it while they are.
"""

import os
import tempfile
from pathlib import Path

_CACHE = Path(tempfile.mkdtemp(prefix="hf-mech-tests-"))

os.environ.update(
    HF_HOME=str(_CACHE / "hf"),
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_UPDATE_CHECK="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    MPLBACKEND="Agg",
    OMP_NUM_THREADS="1",
    MKL_CBWR="AUTO,STRICT",  # else a product depends on the address of its operands, on some processors
    TOKENIZERS_PARALLELISM="false",
    CUBLAS_WORKSPACE_CONFIG=":4096:8",
)

import shutil
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)

# The first example of a property test often pays for an import or a compilation.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session", autouse=True)
def _own_caches() -> Iterator[None]:
    """Removes this session's Hugging Face caches at its end."""
    yield
    shutil.rmtree(_CACHE, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests of Linux's own things elsewhere."""
    for item in items:
        if item.get_closest_marker("linux") and sys.platform != "linux":
            item.add_marker(pytest.mark.skip(reason="forks, looks into /proc, or sets limits of its process"))


@pytest.fixture(autouse=True)
def _own_accelerate_state() -> Iterator[None]:
    """Forgets the precision and the device that a test chose: accelerate refuses others later in the process."""
    yield
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """The same random numbers in every test, whatever ran before it."""
    torch.manual_seed(0)
