"""The command line: what it prints, and with which code it ends."""

import errno
import functools
import os
import sys
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

import hf_mech.cli.demo
import hf_mech.hub.push
from hf_mech import __version__
from hf_mech.cli import app
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.planning.problem import PlanningError
from tests.hub.local_hub import LocalHub
from tests.hub.toy import ToyConfig, ToyForCausalLM

runner = CliRunner()


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).output == f"hf_mech {__version__}\n"


def test_env_names_everything_that_a_bug_report_needs() -> None:
    answer = runner.invoke(app, ["env"])
    assert answer.exit_code == 0
    names = [line.removeprefix("- ").partition(":")[0] for line in answer.output.splitlines()]
    assert names[0] == "hf_mech"
    assert {"python", "torch", "transformers", "datasets", "accelerate", "huggingface_hub", "tokenizers"} < set(names)
    assert {"safetensors", "evaluate", "numba", "platform", "cpu", "device"} < set(names)


def test_card_renders_and_checks(card_folder: Path) -> None:
    (card_folder / "README.md").unlink()
    assert runner.invoke(app, ["card", str(card_folder), "--check"]).exit_code == 1
    assert runner.invoke(app, ["card", str(card_folder)]).exit_code == 0
    assert runner.invoke(app, ["card", str(card_folder), "--check"]).exit_code == 0


def test_an_error_of_ours_is_one_message_on_stderr(card_folder: Path) -> None:
    (card_folder / "card.yaml").unlink()
    answer = runner.invoke(app, ["card", str(card_folder)])
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("hf-mech: ")
    assert "card.yaml does not exist" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_error_of_a_data_set_is_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(out: Path) -> None:
        raise PlanningError("seed must be a whole number")

    monkeypatch.setattr("hf_mech.cli.demo.run_demo", fail)
    answer = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert (answer.exit_code, answer.stderr) == (1, "hf-mech: seed must be a whole number\n")


@pytest.mark.parametrize("module", ["matplotlib", "up_pyperplan"])
def test_a_missing_extra_is_named_before_the_demo_starts(
    module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    answer = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == f"hf-mech: The demo needs {module}: pip install 'hf-mech[all]'\n"


def test_a_missing_module_of_an_extra_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(out: Path) -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("hf_mech.cli.demo.run_demo", fail)
    answer = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert answer.exit_code == 1
    assert answer.stderr == "hf-mech: matplotlib is not installed. Run: pip install 'hf-mech[all]'\n"


@pytest.mark.parametrize("config", [None, "{}", '{"model_type": "strips_transformer"}', "no JSON"])
def test_a_folder_without_a_checkpoint_is_refused(config: str | None, tmp_path: Path) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    answer = runner.invoke(app, ["push", str(tmp_path), "tester/toy"])
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("hf-mech: ")
    assert str(tmp_path) in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["card"], ["card", "/no/such/folder"], ["push", "."]])
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    assert runner.invoke(app, arguments).exit_code == 2


def test_push_sends_a_saved_checkpoint(
    hub: LocalHub, api: HfApi, card_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hf_mech.hub.push, "HfApi", lambda token: api)
    save_checkpoint(ToyForCausalLM(ToyConfig()), tmp_path / "checkpoint")
    extra = tmp_path / "domain.json"
    extra.write_text("{}")
    arguments = ["push", str(tmp_path / "checkpoint"), "tester/toy", "--private", "--file", str(extra)]
    answer = runner.invoke(app, [*arguments, "--card-folder", str(card_folder)], catch_exceptions=False)
    assert (answer.exit_code, answer.stderr) == (0, "")
    repository = hub.repository("tester/toy")
    head = repository.history()[0]
    assert repository.private
    assert answer.stdout.strip() == f"{hub.url}/tester/toy/commit/{head.sha}"
    assert {"README.md", "domain.json", "model.safetensors", "modeling_toy.py"} < head.files.keys()


# ---------------------------------------------------------------------------------------------------------- full disks


def test_a_place_where_the_demo_cannot_write_is_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hf_mech.cli.demo._demo", lambda *_: pytest.fail("it was started"))
    (tmp_path / "file").write_text("")
    answer = runner.invoke(app, ["demo", "--out", str(tmp_path / "file" / "inside")])
    assert (answer.exit_code, answer.stdout) == (1, "")
    (line,) = answer.stderr.splitlines()
    assert line.startswith(f"hf-mech: {tmp_path / 'file' / 'inside'} cannot be written: Not a directory. ")


@pytest.mark.parametrize(
    ("place", "number"),
    [("hf_mech.cli.demo.save_checkpoint", errno.ENOSPC), ("matplotlib.figure.Figure.savefig", errno.EROFS)],
)
def test_a_disk_that_is_full_during_the_demo(
    place: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, refuse)
    small = functools.partial(hf_mech.cli.demo.run_demo, num_train=20, seeds=1, max_steps=2)
    monkeypatch.setattr("hf_mech.cli.demo.run_demo", small)
    (tmp_path / "attention.png").write_text("whole")
    answer = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert answer.exit_code == 1, answer.output
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("hf-mech: ")
    assert f" cannot be written: {os.strerror(number)}. " in last
    assert str(tmp_path) in last
    assert "Traceback" not in answer.stderr
    assert (tmp_path / "attention.png").read_text() == "whole"
    assert not list(tmp_path.glob(".*"))
