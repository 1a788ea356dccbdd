"""A part of twenty prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.engine import Job
from training.pargen.experiment import PargenOptions
from training.pargen.run import Part, digest_of

ORIGIN = {"command": "python -m training.run_pargen", "commit": "0" * 40, "machine": {}, "versions": {}}


@pytest.fixture
def part() -> Part:
    task = {"program": "pargen", "task": "1_shot_rlw", "split": "test", "seed": 0, "start": 7, "stop": 27}
    return Part.of("whole", {"batch_size": 8}, **task, program_digest=digest_of("pargen"))


@pytest.fixture
def job(part: Part, tmp_path: Path) -> Job:
    return Job(folder=tmp_path / part.name, options=PargenOptions(output_dir=str(tmp_path)), origin=ORIGIN)
