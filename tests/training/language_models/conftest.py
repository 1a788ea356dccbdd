"""Prepared data, and a run of a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.languages.text.programs import prepare_programs
from training.engine import Job
from training.language_models.experiment import LanguageModelOptions
from training.language_models.run import data_folder
from training.language_models.settings import Run

DATA = "prepared"


@pytest.fixture(scope="session")
def output_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that holds the prepared data."""
    folder = tmp_path_factory.mktemp("runs")
    data_folder(folder, DATA).parent.mkdir()
    prepare_programs(data_folder(folder, DATA))
    return folder


@pytest.fixture
def run() -> Run:
    overrides = {"layers": 1, "hidden": 16, "heads": 2, "learning_rate": 1e-2, "batch_size": 8}
    return Run.of("cpu", overrides, objective="mlm", start="scratch", form="stack", seed=0, data=DATA)


@pytest.fixture
def job(output_dir: Path, tmp_path: Path) -> Job:
    options = LanguageModelOptions(output_dir=str(output_dir))
    return Job(folder=tmp_path, options=options, origin={"command": "python -m training.train_lm"})
