"""Writing a file so that a half-written one never replaces a whole one."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hf_mech.hub.disk.full_disk import naming_the_path

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
