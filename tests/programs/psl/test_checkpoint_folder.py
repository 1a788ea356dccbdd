"""A checkpoint's folder is replaced as a whole, also if the process is killed at any moment, or the disk is full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from hf_mech.hub.files import OutputError
from hf_mech.models.dat import DATForCausalLM
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import compile_file
from hf_mech.programs.psl.library import replacing, restore

ROOT = Path(__file__).parents[3]
NEXT_WORD = """registers: {symbol: 's', position: 'p'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    symbol[N] = symbol[n]
"""

# For each folder a process that replaces it and dies, without clean-up, before or after its k-th change of the disk.
KILLED = """
import os, sys
from pathlib import Path
from hf_mech.hub import files
from hf_mech.programs.psl.library import replacing

def dying(function):
    def call(*arguments, **options):
        global count
        for change in (lambda: None, lambda: function(*arguments, **options)):
            change()
            count += 1
            if count == moment:
                os._exit(9)
    return call

for folder in sys.argv[1:]:
    moment = int(Path(folder).parent.name)
    if not os.fork():
        count = 0
        Path.replace, Path.mkdir, Path.write_text = dying(Path.replace), dying(Path.mkdir), dying(Path.write_text)
        files.remove = dying(files.remove)
        with replacing(Path(folder)) as made:
            for name in ("config.json", "model.safetensors"):
                (made / name).write_text("new")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def write(folder: Path, text: str) -> None:
    with replacing(folder) as made:
        for name in ("config.json", "model.safetensors"):
            (made / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def whole(text: str) -> dict[str, str]:
    return {"config.json": text, "model.safetensors": text}


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    folders = {
        exists: [tmp_path / str(exists) / f"{moment:02}" / "made" for moment in range(1, 31)]
        for exists in (True, False)
    }
    for exists, own in folders.items():
        for folder in own:
            folder.parent.mkdir(parents=True)
            if exists:
                write(folder, "old")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, folders[True]), *map(str, folders[False])],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    all_codes = [int(line) for line in done.stdout.split()]
    assert len(all_codes) == 60, done.stderr
    for exists, codes in ((True, all_codes[:30]), (False, all_codes[30:])):
        assert codes == [9] * codes.count(9) + [0] * codes.count(0), done.stderr
        assert codes.count(9) > 10
        assert codes.count(0) > 0
        found, absent = [], 0
        for folder in folders[exists]:
            absent += not folder.exists()
            assert not folder.exists() or contents(folder) in (whole("old"), whole("new"))
            if restore(folder):
                found.append(contents(folder)["config.json"])
                assert contents(folder) == whole(found[-1])
            else:
                assert not exists
            assert not folder.with_name(".made.old").exists()
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
