"""The temporary folder of a push. The next push removes those that killed processes left."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = "hf_mech-push-"
_LOCK = "lock"
_NEW, _OLD = 60.0, 86_400.0  # seconds


@contextmanager
def push_folder() -> Iterator[Path]:
    """An empty folder that exists until the block ends. It is locked meanwhile: no other push removes it.

    The lock lies beside the folder's files: all of these are uploaded.
    """
    sweep_push_folders()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as outer:
        with FileLock(Path(outer) / _LOCK):
            folder = Path(outer) / "files"
            folder.mkdir()
            yield folder


def sweep_push_folders() -> None:
    """Remove the folders of pushes that were killed: those that nobody has locked."""
    for outer in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or another push removes it right now
            age = time.time() - outer.stat().st_mtime
            if age < _NEW or outer.is_symlink():
                continue  # perhaps not locked yet
            if not (outer / _LOCK).exists():
                if age > _OLD:  # earlier versions had no lock
                    shutil.rmtree(outer)
                continue
            with suppress(Timeout), FileLock(outer / _LOCK, timeout=0):
                shutil.rmtree(outer)
