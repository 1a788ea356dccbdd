"""No secret of the environment, and no password of an address, is in what a command writes or prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.toy.experiment import EXPERIMENT, Count
from training.engine import main
from training.engine.runner import claim

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", [OSError, KeyError])
def test_an_error_is_shown_without_secrets(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*_: Any) -> None:
        raise kind("https://me:pass-word@host says: token-of-the-hub")

    monkeypatch.setenv("HF_TOKEN", "token-of-the-hub")
    monkeypatch.setattr(type(EXPERIMENT), "train", train)
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, ["--output_dir", str(tmp_path)])
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert "https://***@host says: ***" in said
    assert "pass-word" not in said
    assert ("Traceback" in said) == (kind is KeyError)


def test_settings_with_a_secret_go_on_with_another_one(tmp_path: Path) -> None:
    """A new password of the same address is no other run."""

    class Addressed(Count):
        def to_dict(self) -> dict[str, Any]:
            return {**super().to_dict(), "train_file": f"https://me:{self.password}@host/x"}

        password = "first-one"

    settings = Addressed.of("cpu", modulus=5, seed=0)
    claim(tmp_path, settings)
    Addressed.password = "second-one"
    claim(tmp_path, settings)
    assert json.loads((tmp_path / "run.json").read_text())["train_file"] == "https://***@host/x"


WANDB = """
import sys
from pathlib import Path
from accelerate import PartialState
from training.engine.run import Tracker
PartialState()
settings = {"train_file": f"https://me:{sys.argv[2].partition('=')[2]}@host/x", "steps": 5}
tracker = Tracker(["wandb", "tensorboard"], "toy", "run", Path(sys.argv[1]), settings)
tracker.log({"loss": 1.0}, 1)
tracker.finish()
"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--note=token-of-the-hub", "--model=an-ordinary-name"])
def test_trackers_note_no_secret(option: str, tmp_path: Path) -> None:
    """wandb notes the command line by itself; an ordinary one stays."""
    own = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_TOKEN": "token-of-the-hub", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WANDB, str(tmp_path), option]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    written = b"\n".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"https://***@host/x" in written
    for secret in (b"token-of-the-hub", b"an-ordinary-name@"):
        assert secret not in written
    assert (b"an-ordinary-name" in written) == ("ordinary" in option)
