"""`hf-mech push-dataset`: a data set of ours for people who have only `datasets`."""

import subprocess
import sys
from pathlib import Path

import datasets
import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

import hf_mech.hub.push
from hf_mech.cli import app
from tests.hub.local_hub import LocalHub

SMALL = ["push-dataset", "formal_languages", "reverse_string", "--set", "num_train=30", "--set", "num_test=10"]


def test_a_folder_loads_where_hf_mech_is_not_imported(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*SMALL, "--set", "seed=3", "--folder", str(tmp_path)], catch_exceptions=False)
    assert done.stdout == f"Wrote {tmp_path / 'README.md'}\n"
    code = f"import datasets; print(datasets.load_dataset({str(tmp_path)!r}, 'reverse_string')['train'][0])"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    made = datasets.load_dataset("hf_mech/formal_languages", "reverse_string", seed=3, num_train=30, num_test=10)
    assert alone.stdout == f"{made['train'][0]}\n"


def test_a_repository_gets_it_in_one_commit(hub: LocalHub, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf_mech.hub.push, "HfApi", lambda token: api)
    done = CliRunner().invoke(app, [*SMALL, "tester/words", "--private"], catch_exceptions=False)
    repository = hub.repository("tester/words", "dataset")
    head = repository.history()[0]
    assert done.stdout.strip() == f"{hub.url}/datasets/tester/words/commit/{head.sha}"
    assert repository.private
    names = {f"reverse_string/{split}-00000-of-00001.parquet" for split in ("train", "test")}
    assert head.files.keys() >= {"README.md", *names}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (SMALL, "needs a REPO_ID, or --folder"),
        ([*SMALL, "me/words", "--folder", "x"], "not both"),
        (["push-dataset", "nothing", "x", "me/x"], "must be of formal_languages"),
        (["push-dataset", "formal_languages", "nothing", "me/x"], "must be of"),
        ([*SMALL, "me/words", "--set", "num_train"], "must be NAME=VALUE"),
        ([*SMALL, "me/words", "--set", "lengths=3"], "lengths"),
    ],
)
def test_a_wrong_line_is_refused(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
