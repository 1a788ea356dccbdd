"""The errors of this room, files and folders that are written whole or not at all, and folders in use.

filelock has the locks. atomicwrites is no longer maintained, and writes no folders.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from hf_mech.hub.redaction import redact


class HubError(ValueError):
    """A checkpoint, card, results.json, data set or key that is refused. The message says what to do."""


class PushError(RuntimeError):
    """A failed upload. The repository keeps its last good commit; the push can be run again."""


class OutputError(OSError):
    """A folder or file that cannot be written: a full or read-only disk, missing rights. What was whole stays whole."""


# ----------------------------------------------------------------------------------------------------------------------
# A full or read-only disk: one line that names the path and the cause.


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
_REFUSED = {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG}


@contextmanager
def naming_the_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the disk into an [`OutputError`] that names `path`, whichever library raised it.

    Raises:
        OutputError: if something cannot be written. Other errors pass.
    """
    try:
        yield
    except OutputError:
        raise
    except Exception as error:
        if (cause := _cause(error, Path(path))) is None:
            raise
        raise OutputError(
            f"{path} cannot be written: {cause}. Free space there, or choose another folder that can be written; "
            "nothing whole was replaced."
        ) from error


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Make the folder, and try to write there, before any work is done.

    Raises:
        OutputError: if it cannot be written.
    """
    folder = Path(folder)
    with naming_the_path(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(4096))
            probe.flush()


def _cause(error: BaseException | None, path: Path) -> str | None:
    """The cause in words, if the disk is at fault."""
    while error is not None:
        if isinstance(error, OSError):
            refused = error.errno in _REFUSED and error.filename and _is_near(str(error.filename), path)
            if error.errno is not None and (error.errno in _FULL or refused):
                return os.strerror(error.errno)
        # safetensors and torch have errors of their own for those of the system.
        if type(error).__name__ == "SafetensorError" and (found := re.search(r"os error (\d+)", str(error))):
            return os.strerror(int(found[1]))
        if isinstance(error, RuntimeError) and re.search(
            r"PytorchStreamWriter|unexpected pos \d+|iostream error", str(error)
        ):
            return "torch could not write its file, as on a full disk"
        error = error.__cause__
    return None


def _is_near(file: str, path: Path) -> bool:
    """Whether the file is `path`, is in it, is beside it, or is a folder above it: no file that is only read."""
    place, where = Path(os.path.abspath(file)), Path(os.path.abspath(path))  # noqa: PTH100  (links stay links)
    return place.is_relative_to(where.parent) or where.is_relative_to(place)


# ----------------------------------------------------------------------------------------------------------------------
# A folder that one process at a time may write, also among several commands and terminals.
#
# The lock is a file beside the folder, `.<name>.lock`, which the operating system frees when its process ends, also
# by a kill. It works between machines where the file system they share has locks (NFS 4, for example).


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Whether this process has the folder for itself until the block ends.

    Args:
        folder: need not exist yet.
        wait: until another process has left it; without this, False is given at once.

    Raises:
        OutputError: if the lock cannot be written.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  ("." has a name, too, and links stay links)
    file = folder.with_name(f".{folder.name}.lock")
    lock = FileLock(file)
    try:
        with naming_the_path(file):
            folder.parent.mkdir(parents=True, exist_ok=True)
            file.touch()  # filelock waits for ever for a file that cannot be made
            lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):  # still held: who waits for a removed file begins anew
            file.unlink()
        lock.release()


# ----------------------------------------------------------------------------------------------------------------------
# A half-written file or folder never replaces a whole one.


_DAY = 86_400.0  # seconds


def write_text_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text`, without secrets (see [`~hf_mech.hub.redaction`]), to `path`: UTF-8, newlines as they are.

    Returns:
        The path written.

    Raises:
        OSError: if the folder does not exist or cannot be written; `path` is then untouched. A full or read-only disk
            is an [`OutputError`].
    """
    path = Path(path)
    with replacing(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        file.write(redact(text))
        file.flush()
        os.fsync(file.fileno())
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path of the same name in a hidden folder beside `path`: make a file or a folder there.

    It replaces the file or folder `path` if the block ends without an error; if the block makes nothing, `path` stays.
    Readers see the complete old or new file. A folder that replaces another one is absent for a moment: hold a lock
    ([`held`]) where others may read it.

    Raises:
        OutputError: if the disk is full or cannot be written; `path` is then untouched.
    """
    path = Path(path)
    with naming_the_path(path):
        sweep(path)
        hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        aside, old = hidden / path.name, hidden / f"{path.name}.old"
        try:
            yield aside
            if aside.is_dir() and path.is_dir():
                path.rename(old)
            if aside.exists():
                aside.replace(path)
        finally:
            if old.exists() and not path.exists():
                old.rename(path)
            shutil.rmtree(hidden, ignore_errors=True)


def sweep(path: Path) -> None:
    """Remove what killed processes left beside `path` more than a day ago."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):  # another process removes it, too
            if time.time() - leftover.stat().st_mtime > _DAY:
                remove(leftover)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
