"""Runs on a Ray cluster of two machines, one of them lost in the middle, are the runs of one machine, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.cases import LICENSE, outcome_of
from tests.training.commands import printed_by
from tests.training.jobs import refusal_of
from tests.training.toy.experiment import EXPERIMENT as TOY
from training.engine.run import files_named
from training.language_models.experiment import EXPERIMENT as LANGUAGE_MODELS

ROOT = Path(__file__).parents[3]

# In a process of its own: Ray starts many, and warns of much that is its own.
PROGRAM = """
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from tests.training.engine.test_cluster import EXPERIMENTS
from tests.two_machines import end, lose_when, two_machines
from training.engine import cluster as engine, main

name, output_dir, place, *arguments = sys.argv[1:]
if place == "elsewhere":  # a cluster whose machines do not see the command's files
    engine.NamedTemporaryFile = lambda **options: nullcontext(SimpleNamespace(name="seen by nobody"))
cluster, node = two_machines()
begun = Path(engine.HF_HOME) / "hf_mech" if place == "elsewhere" else Path(output_dir)
both = lambda: len({path.parent for path in begun.rglob("checkpoint-*")}) > 1  # machines have saved a state
lose_when(cluster, node, both, Path(output_dir), "*/outcome.json")
main(EXPERIMENTS[name], [*arguments, "--executor", "ray", "--output_dir", output_dir])
end(cluster)
print("left behind", [str(path) for path in begun.rglob("*") if path.is_file() and place == "elsewhere"])
"""
EXPERIMENTS = {"toy": TOY, "language_models": LANGUAGE_MODELS}
ARGUMENTS = {
    "toy": ["--num_seeds", "3", "--steps", "400", "--checkpoint_steps", "20", "--report_to", "tensorboard"],
    "language_models": [
        *(*LICENSE, "--objective", "mlm", "--num_seeds", "2", "--layers", "1", "--hidden", "16", "--heads", "2"),
        *("--vocabulary", "300", "--epochs", "3", "--batch_size", "8", "--max_evaluation_blocks", "4"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), [("toy", "shared"), ("toy", "elsewhere"), ("language_models", "elsewhere")])
def test_a_lost_machine_changes_nothing(name: str, place: str, tmp_path: Path) -> None:
    arguments = [*ARGUMENTS[name], "--cards_dir", str(tmp_path / "cards")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, str(tmp_path / "ray"), place, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    if name == "toy":  # the others are too short to lose a machine in their middle
        assert "lost with 0 done" in done.stdout
    assert "left behind []" in done.stdout
    experiment = EXPERIMENTS[name]
    printed_by(experiment, *arguments, "--output_dir", str(tmp_path / "here"), "--jobs", "2")
    here, there = (
        {file.parent.name: file.parent for file in files_named(tmp_path / root, "outcome.json")}
        for root in ("here", "ray")
    )
    assert here.keys() == there.keys() != set()
    for run in here:
        assert outcome_of(experiment.load(here[run])) == outcome_of(experiment.load(there[run]))
        files, others = (
            {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != "outcome.json"}
            for root in (here[run], there[run])
        )
        assert files == others
    if name == "toy":
        assert {path.name for path in (tmp_path / "ray" / "tracking").iterdir()} >= here.keys()
    assert not list(files_named(tmp_path / "ray", "*.lock", ".ray*"))


def test_the_executor_is_one_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal_of(TOY, "--executor", "slurm").endswith("--executor must be of processes, ray, got slurm.")
    monkeypatch.setattr("training.engine.cluster.find_spec", lambda name: None)
    assert "ray is not installed. Run: pip install 'hf-mech[ray]'" in refusal_of(TOY, "--executor", "ray")
    monkeypatch.undo()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(TOY, "shares_runs", True)
    assert "start it with python" in refusal_of(TOY, "--executor", "ray")
