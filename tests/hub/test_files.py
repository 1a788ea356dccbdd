"""Files and folders are whole or untouched, leftovers of killed processes go, and a full disk is one line."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hf_mech.hub import OutputError, save_checkpoint, verify_checksums
from hf_mech.hub.files import check_writable, naming_the_path, replacing, write_text_atomically
from tests.hub.toy import ToyConfig, ToyForCausalLM

DAYS = 86_400.0


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_or_a_folder_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with replacing(tmp_path / "file") as aside:
            aside.write_text(content)
        assert (tmp_path / "file").read_text() == content
        with replacing(tmp_path / "folder") as aside:
            aside.mkdir()
            (aside / content).write_text(content)
        assert names(tmp_path / "folder") == [content]

    def fail(path: Path, make: Callable[[Path], None]) -> None:
        with replacing(path) as aside:
            make(aside)
            raise KeyError

    for name, make in {"file": Path.touch, "folder": Path.mkdir}.items():
        with pytest.raises(KeyError):
            fail(tmp_path / name, make)
    assert (tmp_path / "file").read_text() == "second"
    assert names(tmp_path / "folder") == ["second"]
    assert names(tmp_path) == ["file", "folder"]


def test_a_folder_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OutputError):
        with replacing(tmp_path / "folder") as aside:
            aside.mkdir()
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == ["old"]


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """After two days; what is new may be in use, on another machine too, and what is not ours stays."""
    old, new, other = (tmp_path / name for name in (".x.json.abc.tmp", ".x.json.def.tmp", ".other.json.abc.tmp"))
    for leftover in (old, new, other):
        leftover.mkdir()
        (leftover / "x.json").write_text("half")
    for leftover in (old, other):
        os.utime(leftover, (time.time() - 2 * DAYS,) * 2)
    write_text_atomically(tmp_path / "x.json", "whole")
    assert names(tmp_path) == sorted([new.name, other.name, "x.json"])


# ---------------------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_file_on_a_full_disk(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text_atomically(tmp_path / "results.json", "whole")

    def refuse(file: int) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError) as caught:
        write_text_atomically(path, "half")
    assert str(caught.value).startswith(f"{path} cannot be written: {os.strerror(number)}. ")
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["results.json"]


@pytest.mark.linux
def test_a_checkpoint_stays_whole_when_the_system_refuses_to_write(tmp_path: Path) -> None:
    """The system itself refuses files of more than 64 bytes, as it does on a full disk."""
    import resource

    save_checkpoint(ToyForCausalLM(ToyConfig()), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model, most = ToyForCausalLM(ToyConfig()), resource.getrlimit(resource.RLIMIT_FSIZE)
    writers: dict[Path, Callable[[], object]] = {
        tmp_path: lambda: save_checkpoint(model, tmp_path),
        tmp_path / "x": lambda: write_text_atomically(tmp_path / "x", "y" * 99),
    }
    for path, write in writers.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, most[1]))
        try:
            with pytest.raises(OutputError) as caught:
                write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        assert str(caught.value).startswith(f"{path} cannot be written: File too large. ")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert verify_checksums(tmp_path) == ["model.safetensors"]


def test_errors_of_safetensors_and_torch_are_named() -> None:
    class SafetensorError(Exception):
        pass

    for error in (
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("basic_ios::clear: iostream error"),
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
    assert names(tmp_path / "new") == []
