"""Installs the wheel into new environments, with the oldest versions that it allows and with the newest.

What worked there is written to hf_mech/hub/tested_versions.json; the README's table of versions is rendered from it.

    python -m tests.wheel_check                      # oldest and newest, with this Python
    python -m tests.wheel_check --python python3.13 --which newest

torch comes from constraints.txt, whose version has a build for processors; all others are free.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "hf_mech" / "hub" / "tested_versions.json"
SHOWN = ("torch", "transformers", "datasets", "accelerate", "huggingface_hub", "numpy")
CONTRACT = ("test_outputs.py", "test_generation.py")
"""The parts of the contract suite that say whether a model computes and generates as it should."""
SMALL = ["--layers", "1", "--hidden", "16", "--heads", "2", "--steps", "3", "--batch_size", "2", "--jobs", "1"]
TRAININGS = {
    "strips": ["--domain", "simple", "--sizes", "20", "--num_seeds", "1", "--max_steps", "20", "--num_test", "20"],
    "formal_languages": [
        *("--task", "reverse_string", "--steps", "3", "--batch_size", "2", "--num_hidden_layers", "1"),
        *("--restart_after", "0", "--max_train_length", "4", "--test_samples", "1", "--jobs", "1"),
    ],
    "machines": ["--task", "reverse", "--num_prompts", "2", "--jobs", "1"],
    "belief_state": [
        *("--seeds", "0"),
        *("--model", "bst", *SMALL, "--backward_layers", "1", "--head_width", "16", "--eval_steps", "3"),
        *("--eval_graphs", "4", "--curve_graphs", "4", "--generated", "2"),
    ],
    "msat": [
        *("--scenario", "doorway", *SMALL, "--episodes", "3", "--context", "4", "--eval_steps", "3"),
        *("--eval_episodes", "1", "--curve_episodes", "1"),
    ],
}
"""A run of seconds of each family: STRIPS, stack attention, programs (which are not trained), belief states, M-SAT."""


def run(command: list[str | Path], folder: Path) -> str:
    """Runs a command in a folder, without this checkout in its path; its output.

    Raises:
        RuntimeError: it failed.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environment, "HF_HUB_OFFLINE": "1", "MPLBACKEND": "Agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def pins(which: str) -> list[str]:
    """What pip is asked for besides the wheel: of the oldest versions all lower bounds but torch's."""
    if which == "newest":
        return []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = [line for line in project["dependencies"] if not line.startswith("torch>")]
    return [re.sub(r">=([\d.]+).*", r"==\1", line) for line in bounds]


def install(wheel: Path, python: str, which: str, folder: Path) -> Path:
    """A new environment with the wheel; its Python."""
    run([python, "-m", "venv", folder / "venv"], folder)
    own = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--no-compile"]
    torch = next(
        line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line.startswith("torch")
    )
    run([*pip, torch], folder)
    run([*pip, f"hf-mech[viz,control] @ {wheel.as_uri()}", *pins(which), torch], folder)
    return own


def versions_of(python: Path, empty: Path) -> dict[str, str]:
    """The versions that are installed, and hf_mech's from outside of this checkout."""
    code = f"import hf_mech, json; from hf_mech.hub.environment import *; print(json.dumps(package_versions({SHOWN})))"
    return dict(json.loads(run([python, "-c", code], empty).splitlines()[-1]))


def train(python: Path, empty: Path) -> list[str]:
    """Trains a model of each family; their commands' names."""
    for name, options in TRAININGS.items():
        run([python.with_name("hf-mech"), "train", name, *options], empty)
    return list(TRAININGS)


def contract_tests(python: Path, folder: Path) -> int:
    """Runs a part of the contract suite on what is installed; the number of tests that have passed."""
    run([python, "-m", "pip", "install", "--quiet", "--no-compile", "pytest", "hypothesis"], folder)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    files = [folder / "tests" / "contract" / name for name in CONTRACT]
    options = ["--import-mode=importlib", "-m", "not slow and not gpu", "-q", "-p", "no:cacheprovider"]
    options += ["-c", os.devnull, "--rootdir", str(folder), "-o", f"pythonpath={folder}"]
    passed = re.search(r"(\d+) passed", run([python, "-m", "pytest", *options, *files], folder))
    return int(passed[1]) if passed else 0


def check(python: Path, folder: Path) -> dict[str, Any]:
    """Imports, trains and tests what is installed; the versions, and what was done."""
    (folder / "empty").mkdir()
    return {
        "versions": versions_of(python, folder / "empty"),
        "trained": train(python, folder / "empty"),
        "contract_tests_passed": contract_tests(python, folder),
    }


def note(which: str, found: dict[str, Any]) -> None:
    """Adds what was found to the file, in place of what was there of this Python."""

    def key(one: dict[str, Any]) -> tuple[str, str]:
        return one["which"], one["versions"]["python"].rpartition(".")[0]

    found = {"which": which, **found}
    others = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else []
    kept = [*(one for one in others if key(one) != key(found)), found]
    FILE.write_text(json.dumps(sorted(kept, key=lambda one: key(one)[::-1]), indent=1) + "\n", "utf-8")


def main() -> None:
    """Checks, and adds what was found to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--which", nargs="+", default=["oldest", "newest"], choices=["oldest", "newest"])
    options = parser.parse_args()
    for which in options.which:
        with tempfile.TemporaryDirectory(prefix="hf-mech-wheel-") as temporary:
            folder = Path(temporary)
            python = install(build_wheel(folder), options.python, which, folder)
            note(which, check(python, folder))


if __name__ == "__main__":
    main()
