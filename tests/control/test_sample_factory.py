"""The policy that asks another process, with a process that speaks the same language and needs no Sample Factory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hf_mech.control import make_environment
from hf_mech.control.errors import ControlError
from hf_mech.control.sample_factory import SampleFactoryPolicy, policy, train
from hf_mech.control.sample_factory.train import main, python_of, run, training_command
from tests.control.environments import play

SERVER = """
import json, random, sys
print(json.dumps({"height": HEIGHT, "width": 64, "components": 2}), flush=True)
frames = sys.stdin.buffer
while kind := frames.read(1):
    if kind == b"R":
        random.seed(frames.read(8))
    else:
        brightness = sum(frames.read(HEIGHT * 64 * 3))
        if DIES:
            sys.exit("out of memory")
        sys.stdout.buffer.write(bytes([random.randrange(3), brightness % 3]))
        sys.stdout.buffer.flush()
"""


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleFactoryPolicy]:
    """A policy whose server is the one above."""
    yield from _policy(tmp_path, monkeypatch, SERVER.replace("HEIGHT", "36").replace("DIES", "False"))


def _policy(folder: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> Iterator[SampleFactoryPolicy]:
    program = folder / "server.py"
    program.write_text(server, encoding="utf-8")
    monkeypatch.setattr(policy, "SERVER", program)
    with SampleFactoryPolicy(sys.executable, folder, "appo", "my_way_home") as decides:
        yield decides


def test_episodes_follow_from_their_seeds(answers: SampleFactoryPolicy) -> None:
    with make_environment("hf_mech/Rooms-v0") as environment:
        first, other, again = (play(environment, answers, seed) for seed in (1, 2, 1))
    assert np.array_equal(first["actions"], again["actions"])
    assert not np.array_equal(first["actions"][:20], other["actions"][:20])
    brightness = first["observations"][:-1].astype(int).sum((1, 2, 3)) % 3
    assert np.array_equal(first["actions"][:, 1], brightness)


def test_a_checkpoint_for_other_frames_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (decides,) = _policy(tmp_path, monkeypatch, SERVER.replace("HEIGHT", "72").replace("DIES", "False"))
    with make_environment("hf_mech/Rooms-v0") as environment:
        with pytest.raises(ControlError, match=r"expects frames \[72, 64, 3\] and actions of 2"):
            decides.reset(environment, np.random.default_rng(0))


def test_a_process_that_ends_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (decides,) = _policy(tmp_path, monkeypatch, SERVER.replace("HEIGHT", "36").replace("DIES", "True"))
    with make_environment("hf_mech/Rooms-v0") as environment:
        observation, info = environment.reset(seed=0)
        decides.reset(environment, np.random.default_rng(0))
        with pytest.raises(ControlError, match=r"Sample Factory ended: out of memory\. Set its environment up"):
            decides(observation, info)
        with pytest.raises(ControlError, match="call reset"):
            decides(observation, info)


def test_no_python_where_one_was_named(tmp_path: Path) -> None:
    decides = SampleFactoryPolicy(tmp_path / "python", tmp_path, "appo", "my_way_home")
    with make_environment("hf_mech/Rooms-v0") as environment:
        with pytest.raises(ControlError, match=r"python does not run.*hf_mech\.control\.sample_factory\.train"):
            decides.reset(environment, np.random.default_rng(0))


def test_the_training_command_names_the_environment_and_the_folder(tmp_path: Path) -> None:
    command = training_command(tmp_path, "deadly_corridor", 1000, 2, ["--device=cpu"])
    assert command[0] == str(python_of(tmp_path))
    assert {"--env=doom_deadly_corridor", "--train_for_env_steps=1000", "--device=cpu"} < set(command)


def test_what_the_training_leaves_behind_is_ended(tmp_path: Path) -> None:
    left = tmp_path / "left"
    os.mkfifo(left)
    code = f"import subprocess, sys; subprocess.Popen(['sleep', '600'], stdout=open({str(left)!r}, 'w')); sys.exit(3)"
    with ThreadPoolExecutor() as threads:
        # The pipe ends when the last process that could write into it has ended.
        reading = threads.submit(left.read_text)
        assert run([sys.executable, "-c", code]) == 3
        assert reading.result(timeout=30) == ""


def test_another_scenario_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["basic", "--folder", "x"])
    assert "deadly_corridor" in capsys.readouterr().err


def test_options_behind_two_dashes_go_to_sample_factory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(train, "set_up", lambda folder: None)
    monkeypatch.setattr(train, "run", ran.append)
    with pytest.raises(SystemExit):
        main(["my_way_home", "--folder", str(tmp_path), "--steps", "40", "--", "--device=cpu", "--seed", "3"])
    assert ran[0][-3:] == ["--device=cpu", "--seed", "3"]
    assert "--train_for_env_steps=40" in ran[0]
