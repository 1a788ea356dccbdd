"""A full or read-only disk: one line that names the path and the cause."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hf_mech.hub.disk.errors import OutputError

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
