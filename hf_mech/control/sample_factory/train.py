"""Sets up an environment for Sample Factory and trains APPO there.

    python -m hf_mech.control.sample_factory.train my_way_home --folder appo --steps 200000000 --workers 8

The folder gets `environment`, the Python environment, and `train/<scenario>`, the checkpoints. The same command again
continues the training. Options after `--` go to Sample Factory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import venv
from pathlib import Path

from hf_mech.control.vizdoom.scenarios import SCENARIOS

REQUIREMENTS = ("sample-factory==2.1.1", "vizdoom>=1.2,<2", "opencv-python<4.12")
PAPER_STEPS = 200_000_000
"""Frames of the engine that the paper trained for on Deadly Corridor (Section 7.5)."""


def python_of(folder: Path) -> Path:
    """The interpreter of the environment in the folder."""
    binaries = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin")
    return (binaries / "python").absolute()


def set_up(folder: Path) -> None:
    """Makes the environment, unless Sample Factory can be imported there already.

    Raises:
        subprocess.CalledProcessError: pip fails.
    """
    python = python_of(folder)
    if python.exists() and subprocess.run([python, "-c", "import sample_factory, vizdoom"]).returncode == 0:
        return
    venv.create(folder / "environment", with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)


def training_command(folder: Path, scenario: str, steps: int, workers: int, more: list[str]) -> list[str]:
    """The command that trains, or continues to train."""
    return [
        *(str(python_of(folder)), "-m", "sf_examples.vizdoom.train_vizdoom", "--algo=APPO"),
        *(f"--env=doom_{scenario}", f"--experiment={scenario}", f"--train_dir={(folder / 'train').absolute()}"),
        *(f"--train_for_env_steps={steps}", f"--num_workers={workers}", "--restart_behavior=resume"),
        *more,
    ]


def run(command: list[str]) -> int:
    """Runs a command to its end, and ends all that it started: Sample Factory may leave engines behind.

    Returns:
        The command's exit status.
    """
    training = subprocess.Popen(command, start_new_session=True)
    try:
        return training.wait()
    except KeyboardInterrupt:
        training.send_signal(signal.SIGINT)  # it saves a checkpoint
        return training.wait()
    finally:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(training.pid, signal.SIGKILL)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hf_mech.control.sample_factory.train", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--folder", type=Path, required=True, help="for the environment and the checkpoints")
    parser.add_argument("--steps", type=int, default=PAPER_STEPS, help="frames of the engine, four a decision")
    parser.add_argument("--workers", type=int, default=8, help="processes that play")
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    set_up(options.folder)
    command = training_command(options.folder, options.scenario, options.steps, options.workers, given[end + 1 :])
    raise SystemExit(run(command))


if __name__ == "__main__":
    main()
