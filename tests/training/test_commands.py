"""The commands start as modules, as files, and by `accelerate launch`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(path.stem for path in (ROOT / "training").glob("*.py") if path.stem.startswith(("train_", "run_")))
EXPERIMENTS = [name for name in COMMANDS if "import EXPERIMENT" in (ROOT / f"training/{name}.py").read_text("utf-8")]
"""Those of the engine; `run_architecture` only measures compiled programs."""
LAUNCHERS = {
    "module": ["-m", "training.{}"],
    "file": ["training/{}.py"],
    "accelerate": ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "-m", "training.{}"],
}


def shown_help(command: str, launcher: str) -> str:
    arguments = [part.format(command) for part in LAUNCHERS[launcher]]
    done = subprocess.run([sys.executable, *arguments, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_there_are_commands() -> None:
    assert len(COMMANDS) > len(EXPERIMENTS) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_starts_in_every_way(command: str, launcher: str) -> None:
    said = shown_help(command, launcher)
    assert f"python -m training.{command}" in said
    if command in EXPERIMENTS:
        for option in ("--seeds", "--num_seeds", "--preset", "--jobs", "--output_dir", "--cards_dir", "--report_to"):
            assert option in said
