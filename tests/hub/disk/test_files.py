"""Files are whole or untouched; a full disk is one line; leftovers of killed processes are removed."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from hf_mech.hub import OutputError, save_checkpoint, verify_checksums
from hf_mech.hub.files import check_writable, naming_the_path, replacing, write_text_atomically
from hf_mech.hub.push import PREFIX, push_folder
from tests.hub.toy import ToyConfig, ToyForCausalLM

ROOT = Path(__file__).parents[3]
HOUR = 3_600.0


def aged(path: Path, seconds: float) -> Path:
    os.utime(path, (time.time() - seconds,) * 2)
    return path


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_temporary_file_that_a_kill_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    """SIGKILL in the middle of a write; the file is whole, and nothing stays."""
    code = (
        "import os, signal, sys; from pathlib import Path; from hf_mech.hub.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as aside:\n"
        "    aside.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    target = tmp_path / "results.json"
    target.write_text("whole")
    subprocess.run([sys.executable, "-c", code, str(target)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    (leftover,) = tmp_path.glob(".results.json.*.tmp")
    assert target.read_text() == "whole"
    write_text_atomically(target, "new")
    assert leftover.exists()  # a new one may be in use on another machine
    aged(leftover, HOUR)
    write_text_atomically(target, "newer")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_what_is_not_ours_or_is_in_use_stays(tmp_path: Path, ended: int) -> None:
    target = tmp_path / "results.json"
    kept = [
        ".results.json.x.tmp",
        f".other.json.{ended}.tmp",
        f"results.json.{ended}.tmp",
        f".results.json.{ended}.txt",
    ]
    kept += [f".results.json.{os.getppid()}.tmp"]
    for name in (*kept, f".results.json.{ended}.tmp"):
        (tmp_path / name).write_text("")
        aged(tmp_path / name, HOUR)
    write_text_atomically(target, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "results.json"])


def test_a_checkpoint_that_a_kill_left_aside_is_removed(tmp_path: Path, ended: int) -> None:
    (tmp_path / f".checkpoint.{ended}.tmp").mkdir()
    (tmp_path / f".checkpoint.{ended}.tmp" / "model.safetensors").write_text("half")
    aged(tmp_path / f".checkpoint.{ended}.tmp", HOUR)
    save_checkpoint(ToyForCausalLM(ToyConfig()), tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_push_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed push leaves its folder; the next one removes it, but none that is locked, new or somebody else's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, signal, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from hf_mech.hub.push import push_folder\n"
        "with push_folder() as folder:\n"
        "    (folder / 'model.safetensors').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    (killed,) = tmp_path.iterdir()
    locked, new, old, other = (tmp_path / name for name in (f"{PREFIX}a", f"{PREFIX}b", f"{PREFIX}c", "other-push-d"))
    for folder in (locked, new, old, other):
        folder.mkdir()
    (new / "lock").write_text("")
    with push_folder():
        assert killed.exists()  # it is new
    with FileLock(locked / "lock"):
        for folder, age in ((killed, HOUR), (locked, HOUR), (other, HOUR), (old, 48 * HOUR)):
            aged(folder, age)
        with push_folder() as folder:
            assert list(folder.iterdir()) == []
            assert {path.name for path in tmp_path.iterdir()} == {
                *(path.name for path in (locked, new, other)),
                folder.parent.name,
            }
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (locked, new, other)}


# ---------------------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_file_on_a_full_disk(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    write_text_atomically(path, "whole")
    before = path.read_bytes()

    def refuse(file: int) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError) as caught:
        write_text_atomically(path, "half")
    assert str(caught.value).startswith(f"{path} cannot be written: {os.strerror(number)}. ")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]


LIMITED = """
import resource, sys
from pathlib import Path
import torch
from hf_mech.hub import save_checkpoint
from hf_mech.hub.files import write_text_atomically
from tests.hub.toy import ToyConfig, ToyForCausalLM
import hf_mech.hub
model = ToyForCausalLM(ToyConfig())
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
target = Path(sys.argv[1], "x")
for write in (lambda: save_checkpoint(model, sys.argv[1]), lambda: write_text_atomically(target, "y" * 99)):
    try:
        write()
    except hf_mech.hub.OutputError as error:
        print(error)
"""


def test_a_checkpoint_stays_whole_when_the_system_refuses_to_write(tmp_path: Path) -> None:
    """The system itself refuses files of more than 64 bytes, as it does on a full disk."""
    save_checkpoint(ToyForCausalLM(ToyConfig()), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{tmp_path} cannot be written: File too large. ")
    assert second.startswith(f"{tmp_path / 'x'} cannot be written: File too large. ")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert verify_checksums(tmp_path) == ["model.safetensors"]


def test_errors_of_safetensors_and_torch_are_named() -> None:
    class SafetensorError(Exception):
        pass

    for error in (
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail at inline_container.cc:858] . PytorchStreamWriter failed writing file data/0"),
    ):
        with pytest.raises(OutputError, match=r"^there cannot be written: (No space left|torch could not)"):
            with naming_the_path("there"):
                raise error


@pytest.mark.parametrize(
    "error",
    [PermissionError(13, "no", "/etc/read"), FileNotFoundError(2, "no", "there/x"), KeyError("x")],
)
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        with naming_the_path("there"):
            raise error
    assert caught.value is error


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OutputError, match=f"{folder} cannot be written: (File exists|Not a directory)"):
            check_writable(folder)
    check_writable(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_nothing_replaces_a_file_after_an_error(tmp_path: Path) -> None:
    target = tmp_path / "x.png"
    target.write_text("whole")

    def write_half() -> None:
        with replacing(target) as aside:
            aside.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    assert target.read_text() == "whole"
