"""Writing a file so that a half-written one never replaces a whole one."""

import os
from pathlib import Path


def write_text_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` (UTF-8, newlines as they are) to `path`: readers see the complete old or new file.

    The text is written to a temporary file in the same folder, which then replaces `path` in one step.

    Returns:
        The path written.

    Raises:
        OSError: if the folder does not exist or cannot be written; `path` is then untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
