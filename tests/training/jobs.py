"""Runs that the tests start, and commands that are refused."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from tests.training.commands import stages_of
from training.engine import Experiment, Job, main


def job_in(
    folder: Path, experiment: Experiment[Any, Any], *, stop_at: int | None = None, checkpoint_steps: int = 1_000
) -> Job:
    """A job that trains in the folder."""
    kind: Any = experiment.options
    options = kind(output_dir=str(folder.parent), checkpoint_steps=checkpoint_steps)
    return Job(folder=folder, options=options, origin={}, stop_at=stop_at)


def runs_of(experiment: Experiment[Any, Any], *arguments: str) -> list[Any]:
    """The runs that the command would do."""
    return [run for stage in stages_of(experiment, *arguments) for run in stage]


def refusal_of(experiment: Experiment[Any, Any], *arguments: str) -> str:
    """The one line on stderr with which the command refuses its arguments."""
    said = io.StringIO()
    with pytest.raises(SystemExit) as ended, contextlib.redirect_stderr(said):
        main(experiment, arguments)
    assert ended.value.code == 2
    (line,) = said.getvalue().splitlines()
    return line
