"""A folder that one process at a time may write, also among several commands and terminals.

The lock is a file beside the folder, `.<name>.lock`, which the operating system frees when its process ends, also by a
kill. It works between machines where the file system they share has locks (NFS 4, for example).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from hf_mech.hub.disk.full_disk import naming_the_path


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
