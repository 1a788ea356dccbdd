"""An experiment that declares itself has all that an experiment has: the proof is the toy."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import AutoModelForCausalLM

from hf_mech.hub import Results, check_folder
from hf_mech.hub.environment import code_version, running_command
from tests.hub.local_hub import LocalHub
from tests.training.commands import printed_by
from tests.training.toy.experiment import EXPERIMENT
from training.engine import SettingsError, main
from training.engine.card import common_origin
from training.render_readme import render

ROOT = Path(__file__).parents[3]
COMMAND = "from tests.training.toy.experiment import EXPERIMENT; from training.engine import main; main(EXPERIMENT)"
BEFORE_THE_DASHES = "import sys; " + COMMAND.replace("(EXPERIMENT)", "(EXPERIMENT, sys.argv[1 : sys.argv.index('--')])")
SECRETS = {"WANDB_API_KEY": "0123456789" * 4, "OPENAI_API_KEY": "key-of-the-chat", "line": "hf_AbcdefghijklmnoP1234"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Three runs, one after the other, with a tracker: their root, and the output."""
    root = tmp_path_factory.mktemp("toy")
    folders = ["--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")]
    return root, printed_by(EXPERIMENT, "--num_seeds", "3", "--jobs", "1", "--report_to", "tensorboard", *folders)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the same runs, two at a time, in a process of their own, with secrets and all trackers, pushed."""
    root = tmp_path_factory.mktemp("beside")
    with LocalHub() as hub:
        own = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "TRACKIO_DIR": str(root / "trackio")}
        done = subprocess.run(
            [
                *(sys.executable, "-c", BEFORE_THE_DASHES, "--num_seeds", "3", "--jobs", "2"),
                *("--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")),
                *("--report_to", "tensorboard,wandb", "trackio", "--push_to_hub", "--hub_user", "me"),
                *("--", f"--hub_token={SECRETS['line']}", "--url", "https://me:pass-word@host/x"),
            ],
            cwd=ROOT,
            env={**hub.environment(root / "home"), **own, **SECRETS, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        pushed = hub.repositories["model", "me/toy"]
        (root / "pushed.json").write_text(json.dumps(sorted(pushed.commits[pushed.branches["main"]].files)))
        (root / "said.txt").write_text(done.stdout + done.stderr)
    return root


def test_the_toy_is_short() -> None:
    lines = (Path(__file__).parents[1] / "toy" / "experiment.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60


def test_every_outcome_says_where_it_comes_from(finished: tuple[Path, str]) -> None:
    root, _ = finished
    for file in (root / "runs").glob("*/outcome.json"):
        origin = json.loads(file.read_text())["origin"]
        assert origin["command"] == running_command()
        assert origin["commit"] == code_version()
        assert origin["machine"]["cores"] >= 1
        assert "torch" in origin["versions"]


def test_runs_of_several_machines_share_a_card(finished: tuple[Path, str]) -> None:
    """As those of a cluster do; what is refused are other versions."""
    root, _ = finished
    origins = [json.loads(file.read_text())["origin"] for file in sorted((root / "runs").glob("*/outcome.json"))]
    origins[0]["machine"] = {"cpu": "an abacus", "gpu": "a loom", "cores": 1}
    here = origins[1]["machine"]
    assert common_origin(origins) == origins[1] | {
        "machine": {"cpu": f"an abacus, {here['cpu']}", "gpu": "a loom", "cores": 1}
    }
    origins[2]["versions"] = {**origins[2]["versions"], "torch": "0.1"}
    with pytest.raises(SettingsError, match=r"0\.1.* cannot share a card"):
        common_origin(origins)


def test_there_is_a_card(finished: tuple[Path, str]) -> None:
    root, _ = finished
    card = root / "cards" / "toy"
    check_folder(card)
    results = Results.load(card / "results.json")
    assert results.results[0].n == 3
    assert results.commit == code_version()
    assert (card / "card.yaml").read_text().startswith("# Generated from toy/card.md")
    text = (card / "README.md").read_text()
    assert "learned to count" in text
    assert "| 5-cpu-seed0 |" in text
    assert "li2024stack" in text


def test_there_is_a_table_for_the_readme(finished: tuple[Path, str]) -> None:
    root, _ = finished
    tables = EXPERIMENT.results(root / "cards")
    text = "before\n<!-- begin toy: rendered -->\nold\n<!-- end toy -->\nafter\n"
    rendered = render(text, tables)
    assert "old" not in rendered
    assert "| accuracy |" in rendered
    assert render(rendered, tables) == rendered
    with pytest.raises(ValueError, match="No experiment gives a table 'toy'"):
        render(text, {})


def test_the_table_is_printed(finished: tuple[Path, str]) -> None:
    _, printed = finished
    assert [line.split() for line in printed.splitlines() if line.startswith(" 5-cpu")] == [
        [f"5-cpu-seed{seed}", "1.00"] for seed in range(3)
    ]
    assert "accuracy" in printed


def test_a_tracker_holds_every_point_of_the_loss(finished: tuple[Path, str]) -> None:
    root, _ = finished
    for seed in range(3):
        name = f"5-cpu-seed{seed}"
        losses = json.loads((root / "runs" / name / "outcome.json").read_text())["losses"]
        events = EventAccumulator(str(root / "runs" / "tracking" / name)).Reload().Scalars("train/loss")
        assert [event.step for event in events] == list(range(1, 41))
        assert [event.value for event in events] == pytest.approx(losses, rel=1e-6)


def test_the_checkpoint_is_saved(finished: tuple[Path, str]) -> None:
    root, _ = finished
    model = AutoModelForCausalLM.from_pretrained(root / "runs" / "toy")
    assert model.config.n_embd == 16


def test_a_dry_run_says_what_is_done_and_how_long_the_rest_takes(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root, _ = finished
    main(EXPERIMENT, ["--seeds", "0,9", "--output_dir", str(root / "runs"), "--dry_run"])
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if "5-cpu" in line}
    assert rows["5-cpu-seed0"] == ["done"]
    assert rows["5-cpu-seed9"][0] == "new"
    assert rows["5-cpu-seed9"][-1] == "s"
    assert not (root / "runs" / "5-cpu-seed9").exists()


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(EXPERIMENT), "train", interrupted)
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, ["--output_dir", str(tmp_path)])
    assert left.value.code == 130
    assert f"goes on from each run's last checkpoint: --output_dir {tmp_path}" in capsys.readouterr().err


def test_what_a_kill_left_of_a_finished_run_is_removed(tmp_path: Path) -> None:
    command = ["--steps", "5", "--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]
    main(EXPERIMENT, command)
    folder = tmp_path / "runs" / "5-cpu-steps=5-seed0"
    (folder / "checkpoint-4").mkdir()
    main(EXPERIMENT, command)
    assert sorted(path.name for path in folder.iterdir()) == ["model", "outcome.json", "run.json", "run.yaml"]


def test_the_run_yaml_of_a_run_repeats_it(finished: tuple[Path, str], tmp_path: Path) -> None:
    first, name = finished[0] / "runs", "5-cpu-seed1"
    folders = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]
    main(EXPERIMENT, ["--config_file", str(first / name / "run.yaml"), *folders])
    assert [path.parent.name for path in (tmp_path / "runs").glob("*/run.json")] == [name]
    weights = ((root / name / "model" / "model.safetensors").read_bytes() for root in (first, tmp_path / "runs"))
    assert len(set(weights)) == 1


@pytest.mark.slow
def test_runs_side_by_side_are_runs_alone(finished: tuple[Path, str], beside: Path) -> None:
    alone, _ = finished
    names = [f"5-cpu-seed{seed}" for seed in range(3)]
    for name in names:
        one, other = ((root / "runs" / name / "model" / "model.safetensors").read_bytes() for root in (alone, beside))
        assert one == other
    for root in (alone, beside):
        assert sorted(path.name for path in (root / "runs").iterdir()) == [*names, "toy", "tracking"]


@pytest.mark.slow
def test_no_secret_of_the_line_or_the_environment_is_written_or_said(beside: Path) -> None:
    files = [path for path in beside.rglob("*") if path.is_file()]
    assert {"run.json", "outcome.json", "results.json", "README.md", "card.yaml", "said.txt"} <= {f.name for f in files}
    written = b"\n".join(path.read_bytes() for path in files)
    for secret in (*SECRETS.values(), "pass-word"):
        assert secret.encode() not in written
    command = Results.load(beside / "cards" / "toy" / "results.json").command
    assert command.startswith("python -c ")
    assert command.endswith("-- '--hub_token=***' --url 'https://***@host/x'")
    assert "--num_seeds 3 " in command


@pytest.mark.slow
def test_every_tracker_holds_every_run(beside: Path) -> None:
    (database,) = (beside / "trackio").glob("toy*.db")
    with sqlite3.connect(database) as rows:
        assert rows.execute("select count(*) from metrics where run_name = '5-cpu-seed0'").fetchone()[0] >= 40
    tracking = beside / "runs" / "tracking"
    assert len(list((tracking / "wandb").glob("offline-run-*/*.wandb"))) == 3
    assert len(list(tracking.glob("5-cpu-seed*/events.*"))) == 3


@pytest.mark.slow
def test_the_checkpoint_is_pushed(beside: Path) -> None:
    pushed = json.loads((beside / "pushed.json").read_text())
    assert {"README.md", "config.json", "model.safetensors", "results.json"} <= set(pushed)


def running(root: Path) -> list[int]:
    """The processes that have the folder in their command line or their files open there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                str(root).encode() in (process / "cmdline").read_bytes()
                or str(root).encode() in (process / "environ").read_bytes()
            ):
                found.append(int(process.name))
    return found


@pytest.mark.slow
@pytest.mark.linux
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_an_ended_command_leaves_nobody_behind(tmp_path: Path, name: str) -> None:
    """Ctrl-C and a kill end the runs that are under way, and no further one begins."""
    ending = signal.Signals[name]
    command = subprocess.Popen(
        [
            *(sys.executable, "-c", COMMAND, "--num_seeds", "4", "--jobs", "2", "--steps", "100000"),
            *("--checkpoint_steps", "20", "--output_dir", str(tmp_path / "runs")),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HERE": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's `&` ignores it
    )
    try:
        while len({saved.parent for saved in (tmp_path / "runs").glob("*/checkpoint-*")}) < 2:
            assert command.poll() is None, command.communicate()[1]
            time.sleep(0.05)
        if ending == signal.SIGINT:
            os.killpg(command.pid, ending)  # as a terminal does
        else:
            command.kill()
        _, said = command.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        command.communicate()
    assert command.returncode == (130 if ending == signal.SIGINT else -ending)
    assert ("The same command goes on" in said) == (ending == signal.SIGINT)
    deadline = time.monotonic() + 20
    while running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running(tmp_path) == []
    assert sorted(path.name for path in (tmp_path / "runs").glob("[!.]*")) == [
        "5-cpu-steps=100000-seed0",
        "5-cpu-steps=100000-seed1",
    ]
