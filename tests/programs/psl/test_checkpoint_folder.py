"""A checkpoint's folder is replaced as a whole, also if the process is killed at any moment, or the disk is full."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from hf_mech.hub import files
from hf_mech.hub.files import OutputError
from hf_mech.models.dat import DATForCausalLM
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import compile_file
from hf_mech.programs.psl.library import replacing, restore

NEXT_WORD = """registers: {symbol: 's', position: 'p'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    symbol[N] = symbol[n]
"""


def killed(folder: Path, moment: int) -> int:
    """The exit code of a process that replaces a folder, and dies without clean-up at that moment.

    A moment is before or after a change of the disk; 0 if the process ends before it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in a process with threads: it only writes files
        process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        count = 0

        def dying(function: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal count
                for step in (lambda: None, lambda: function(*arguments, **options)):
                    step()
                    count += 1
                    if count == moment:
                        os._exit(9)

            return call

        for name in ("replace", "mkdir", "write_text"):
            setattr(Path, name, dying(getattr(Path, name)))
        files.remove = dying(files.remove)
        write(folder, "new")
        os._exit(0)
    finally:
        os._exit(1)


def write(folder: Path, text: str) -> None:
    with replacing(folder) as made:
        for name in ("config.json", "model.safetensors"):
            (made / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def whole(text: str) -> dict[str, str]:
    return {"config.json": text, "model.safetensors": text}


@pytest.mark.linux
@pytest.mark.parametrize("exists", [True, False])
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(exists: bool, tmp_path: Path) -> None:
    codes, found, absent = [], [], 0
    for moment in range(1, 41):
        folder = tmp_path / f"{moment:02}" / "made"
        folder.parent.mkdir()
        if exists:
            write(folder, "old")
        codes.append(killed(folder, moment))
        absent += not folder.exists()
        assert not folder.exists() or contents(folder) in (whole("old"), whole("new"))
        if restore(folder):
            found.append(contents(folder)["config.json"])
            assert contents(folder) == whole(found[-1])
        else:
            assert not exists
        assert not folder.with_name(".made.old").exists()
        if codes[-1] == 0:
            break
    assert codes == [9] * (len(codes) - 1) + [0]
    assert len(codes) > 10
    assert found == sorted(found, reverse=True)  # old, then new
    assert set(found) == ({"old", "new"} if exists else {"new"})
    assert absent > 0  # between the renames


@pytest.mark.parametrize("number", [1, 2])
def test_a_rename_that_fails_is_undone(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, rename, calls = tmp_path / "made", Path.replace, []
    write(folder, "old")

    def failing(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == number:
            raise PermissionError(errno.EACCES, "in use", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OutputError, match="Permission denied"):
        write(folder, "new")
    assert contents(folder) == whole("old")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_files_of_others_are_never_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    write(folder, "old")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ProgramsError, match=r"notes\.txt"):
        write(folder, "new")
    assert contents(folder) == {**whole("old"), "notes.txt": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_killed_compilation_is_restored_by_the_next(tmp_path: Path) -> None:
    source, folder, old = tmp_path / "next.psl", tmp_path / "made", tmp_path / ".made.old"
    source.write_text(NEXT_WORD)
    compile_file(source, folder, num_open_values=5)
    folder.rename(old)  # the moment between the two renames
    with pytest.raises(ProgramsError, match="is not empty"):
        compile_file(source, folder, overwrite=False)
    assert DATForCausalLM.from_pretrained(folder).config.num_open_values == 5
    folder.rename(old)
    compile_file(source, folder, num_open_values=6)
    assert DATForCausalLM.from_pretrained(folder).config.num_open_values == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "next.psl"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("os error 28")])
def test_a_full_disk_leaves_the_old_checkpoint(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "next.psl", tmp_path / "made"
    source.write_text(NEXT_WORD)
    compile_file(source, folder, num_open_values=5)

    def full(self: Any, made: Path, **options: Any) -> None:
        (made / "model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setattr(DATForCausalLM, "save_pretrained", full)
    with pytest.raises(OutputError, match="No space left"):
        compile_file(source, folder, num_open_values=6)
    assert DATForCausalLM.from_pretrained(folder).config.num_open_values == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "next.psl"]
