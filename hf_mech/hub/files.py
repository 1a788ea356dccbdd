"""Files that are written whole or not at all, folders in use, and one line when the disk is full."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

# ----------------------------------------------------------------------------------------------------------------------
# What goes wrong on a disk.


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
        probe = folder / f".writable.{os.getpid()}.tmp"
        try:
            probe.write_bytes(bytes(4096))
        finally:
            probe.unlink(missing_ok=True)


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
        if isinstance(error, RuntimeError) and re.search(r"PytorchStreamWriter|unexpected pos \d+", str(error)):
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
# by a
# kill. It works between machines where the file system they share has locks (NFS 4, for example).


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
# Writing a file so that a half-written one never replaces a whole one.


_NEW, _OLD = 60.0, 86_400.0  # seconds


def write_text_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` (UTF-8, newlines as they are) to `path`: readers see the complete old or new file.

    The text is written to a temporary file in the same folder, which then replaces `path` in one step.

    Returns:
        The path written.

    Raises:
        OSError: if the folder does not exist or cannot be written; `path` is then untouched. A full or read-only disk
            is an [`OutputError`].
    """
    path = Path(path)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a temporary file, or folder, beside `path`; it replaces `path` if the block ends without an error.

    Those that killed processes left beside `path` are removed.

    Raises:
        OutputError: if the disk is full or cannot be written; `path` is then untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming_the_path(path):
        sweep(path)
        try:
            yield temporary
            if temporary.exists():
                temporary.replace(path)
        finally:
            remove(temporary)


def sweep(path: Path) -> None:
    """Remove the temporary files of `path` that killed processes left: of no process, and older than a minute."""
    for leftover in path.parent.glob("*.tmp"):
        found = re.fullmatch(rf"\.{re.escape(path.name)}\.(\d+)\.tmp", leftover.name)
        if found and is_left(leftover, int(found[1])):
            remove(leftover)


def is_left(leftover: Path, process: int) -> bool:
    """Whether a temporary file or folder belongs to a process that has ended."""
    try:
        age = time.time() - leftover.stat().st_mtime
    except FileNotFoundError:
        return False
    # The process may run on another machine: a file that is being written is new, and none is written for a day.
    return age > (_NEW if not _runs(process) else _OLD)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True  # there, signal 0 would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
