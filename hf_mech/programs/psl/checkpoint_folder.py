"""Replacing a checkpoint's folder, so that a kill at any moment leaves a whole one to be found or restored.

No system that we run on exchanges two folders by a call of the standard library. So an old folder `name` is first
renamed to `.name.old`, and the new one, written as `.name.new`, to `name`. Between the two renames there is no `name`;
then the next call restores `.name.old`. That folder is always whole: before it is deleted it is renamed, too.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from hf_mech.programs.psl.language.errors import ProgramError


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Gives an empty folder; at the end of the block it takes the place of `folder`, old or absent.

    If the block raises, `folder` stays as it is. Other processes that replace it wait.

    Raises:
        ProgramError: the old folder has files that the new one lacks. Nothing is deleted.
        OSError: a folder cannot be written or renamed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    old, new, _ = _beside(folder)
    with _lock(folder):
        _restore(folder)
        try:
            new.mkdir()
            yield new
            if folder.is_dir():
                _refuse_foreign_files(folder, new)
                folder.replace(old)
            new.replace(folder)
        finally:
            _restore(folder)


def restore(folder: Path) -> bool:
    """Restores a folder whose replacement was killed, and deletes leftovers; returns whether the folder exists."""
    if folder.name and any(path.exists() for path in _beside(folder)):
        with _lock(folder):
            _restore(folder)
    return folder.is_dir()


def _beside(folder: Path) -> tuple[Path, Path, Path]:
    """The old folder, the new one, and one to be deleted."""
    old, new, deleted = (folder.with_name(f".{folder.name}.{suffix}") for suffix in ("old", "new", "deleted"))
    return old, new, deleted


def _restore(folder: Path) -> None:
    old, new, deleted = _beside(folder)
    if old.is_dir() and not folder.is_dir():
        old.replace(folder)
    shutil.rmtree(deleted, ignore_errors=True)
    if old.is_dir():
        old.replace(deleted)
        shutil.rmtree(deleted, ignore_errors=True)
    shutil.rmtree(new, ignore_errors=True)


def _lock(folder: Path) -> FileLock:
    """The lock of the processes of this user that replace this folder; a file in the temporary folder."""
    name = hashlib.sha256(f"{Path.home()}\n{folder}".encode()).hexdigest()[:24]
    return FileLock(Path(tempfile.gettempdir()) / f"hf_mech-{name}.lock")


def _refuse_foreign_files(folder: Path, new: Path) -> None:
    foreign = {path.name for path in folder.iterdir()} - {path.name for path in new.iterdir()} - {"__pycache__"}
    if foreign:
        raise ProgramError(
            f"{folder} also has {', '.join(sorted(foreign)[:5])}, which a compiled program has not; nothing there "
            "was changed. Name another folder, or move these files first"
        )
