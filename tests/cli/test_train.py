"""`hf-mech train`: every script is a command, with its own options and help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hf_mech.cli import app

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "training").glob("*.py") if path.stem.startswith(("train_", "run_")))


def ask(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `hf-mech`, as a process of its own."""
    script = Path(sys.executable).with_name("hf-mech")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=300, env=environment
    )


def test_every_script_is_a_command_with_its_summary() -> None:
    said = CliRunner().invoke(app, ["train", "--help"]).output
    assert len(SCRIPTS) > 10
    for script in SCRIPTS:
        assert f" {script.partition('_')[2]} " in said
    assert "Learns the hidden domain of action traces" in said


def test_the_list_names_presets_and_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_mech.cli.console.WIDTH", 300)
    said = CliRunner().invoke(app, ["train", "--list"]).output
    (row,) = (line for line in said.splitlines() if line.strip().startswith("strips "))
    assert "Learns the hidden domain" in row
    assert "paper, redraw, by_size, two_part_code" in row
    assert "From Next Token Prediction to (STRIPS) World Models" in row


def test_the_help_is_the_scripts_and_its_examples_can_be_copied() -> None:
    done = ask("train", "strips", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: hf-mech train strips")
    assert "\n    hf-mech train strips --domain simple --sizes 200\n" in done.stdout
    assert "accelerate launch -m hf_mech.training.train_strips" in done.stdout
    assert "python -m training" not in done.stdout


def test_the_arguments_are_the_scripts(tmp_path: Path) -> None:
    line = ["--domain", "simple", "--sizes", "200", "--preset", "redraw", "--output_dir", str(tmp_path)]
    done = ask("train", "strips", *line, "--dry_run")
    assert "simple-200-redraw" in done.stdout
    assert "on one core by these times" in done.stdout
    done = ask("train", "strips", *line, "--preset", "none")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("hf-mech train strips: --preset must be of paper, redraw")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("hf-mech train st", ["stories", "strips"]),
        ("hf-mech train strips --domain simple --preset two", ["two_part_code"]),
        ("hf-mech train formal_languages --task rev", ["reverse_string"]),
    ],
)
def test_names_presets_and_tasks_are_completed(words: str, found: list[str]) -> None:
    place = str(len(words.split()) - 1)
    done = ask(_HF_MECH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert sorted(done.stdout.split()) == found


@pytest.mark.slow
def test_a_run_notes_the_command_that_repeats_it(tmp_path: Path) -> None:
    line = ["--domain", "simple", "--sizes", "20", "--num_seeds", "2", "--max_steps", "20", "--num_test", "20"]
    folders = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]
    done = ask("train", "strips", *line, *folders)
    assert done.returncode == 0, done.stderr
    (card,) = (tmp_path / "cards").iterdir()
    assert "hf-mech train strips --domain simple" in (card / "README.md").read_text()
    assert "python hf-mech" not in (card / "README.md").read_text()
