"""Engines end with their owner, however it ends, and leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hf_mech.control
from hf_mech.control import make_environment
from hf_mech.control.errors import ControlError

pytestmark = pytest.mark.linux

PLAY = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # children of a shell's background job ignore it
import numpy as np
import hf_mech.control
for number in range(int(sys.argv[1])):
    if os.fork() == 0:
        environment = hf_mech.control.make_environment(sys.argv[2])
        environment.reset(seed=number)
        os.write(1, f"{os.getpid()}\\n".encode())  # one write, which another child's cannot part
        while True:
            _, _, terminated, truncated, _ = environment.step(environment.action_space.sample())
            if terminated or truncated:
                environment.reset()
os.wait()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, from which the engines of this test are known."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def processes(folder: Path) -> Iterator[list[str]]:
    """The arguments of the guards and engines that work for the test with this folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:  # ended meanwhile
            continue
        if any(argument.startswith(f"{folder}/hf-mech-engine-") for argument in arguments):
            yield arguments


def shared_memory(arguments: list[str]) -> list[Path]:
    """The shared memory of an engine."""
    instance = arguments[arguments.index("+viz_instance_id") + 1]
    return [path for path in Path("/dev/shm").glob("ViZDoom*") if path.name.endswith(instance)]


def assert_nothing_left(folder: Path, memory: list[Path], seconds: float = 60) -> None:
    """Waits for all guards and engines to end, and checks that they took everything with them."""
    deadline = time.monotonic() + seconds
    while list(processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(processes(folder)) == []
    assert list(folder.glob("hf-mech-engine-*")) == []
    assert [path for path in memory if path.exists()] == []


@pytest.mark.parametrize("how", ["close", "with", "collect", "error"])
def test_an_engine_ends_with_its_environment(how: str, temporary: Path) -> None:
    environment = make_environment("hf_mech/MyWayHome-v0")
    environment.reset(seed=0)
    (memory,) = {tuple(shared_memory(arguments)) for arguments in processes(temporary)}
    assert len(memory) == 3
    match how:
        case "close":
            environment.close()
            environment.close()
        case "with":
            with environment:
                pass
        case "error":
            with pytest.raises(ZeroDivisionError), environment:
                raise ZeroDivisionError
        case "collect":
            del environment
            gc.collect()
    assert_nothing_left(temporary, list(memory))


def test_an_engine_writes_nothing_into_the_working_folder(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("working")
    monkeypatch.chdir(folder)
    with make_environment("hf_mech/MyWayHome-v0") as environment:
        environment.reset(seed=0)
        environment.step(np.array([0, 1]))
    assert list(folder.iterdir()) == []


def killed(name: str, sent: list[signal.Signals], temporary: Path) -> None:
    """Kills a process with each signal in the middle of its episodes, and checks what they leave."""
    count = len(sent)
    source = str(Path(hf_mech.control.__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-c", PLAY, str(count), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source},
        cwd=temporary,
        start_new_session=True,
    )
    try:
        assert parent.stdout is not None
        players = [int(parent.stdout.readline()) for _ in range(count)]
        found = list(processes(temporary))
        assert len(found) == 2 * count  # a guard and an engine each
        memory = [path for arguments in found for path in shared_memory(arguments)]
        for player, one in zip(players, sent, strict=True):
            os.kill(player, one)
        assert_nothing_left(temporary, memory)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()


@pytest.mark.slow
def test_a_killed_process_leaves_no_engine(temporary: Path) -> None:
    killed("hf_mech/MyWayHome-v0", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], temporary)


@pytest.mark.slow
def test_twenty_killed_processes_leave_no_engine(temporary: Path) -> None:
    for name in ("hf_mech/MyWayHome-v0", "hf_mech/DeadlyCorridor-v0"):
        for _ in range(2):
            killed(name, [signal.SIGKILL] * 5, temporary)


@pytest.mark.parametrize("which", ["engine", pytest.param("guard", marks=pytest.mark.slow)])
def test_an_engine_that_is_killed_is_reported_and_replaced(which: str, temporary: Path) -> None:
    with make_environment("hf_mech/MyWayHome-v0") as environment:
        observation, _ = environment.reset(seed=3)
        (guard,) = _children(os.getpid(), temporary)
        (child,) = _children(guard, temporary)
        os.kill({"engine": child, "guard": guard}[which], signal.SIGKILL)
        time.sleep(0.5)
        with pytest.raises(ControlError, match="ended by itself or was killed; the next reset"):
            environment.step(np.array([0, 1]))
        assert np.array_equal(environment.reset(seed=3)[0], observation)
        environment.step(np.array([0, 1]))


def _children(process: int, folder: Path) -> list[int]:
    """The guards or engines of the test's folder that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            arguments = (path / "cmdline").read_text()
        except OSError:
            continue
        if parent == process and f"{folder}/hf-mech-engine-" in arguments:
            found.append(int(path.name))
    return found


def test_a_temporary_folder_without_programs_is_refused(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with make_environment("hf_mech/MyWayHome-v0") as environment:
        with pytest.raises(ControlError, match="Set TMPDIR to one where programs can"):
            environment.reset()
    assert list(temporary.iterdir()) == []
