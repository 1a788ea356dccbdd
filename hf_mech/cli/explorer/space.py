"""The explorer as a Space for the Hub: a folder to be pushed as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

from hf_mech.viz.view import ExplorerError

_FOLDER = Path(__file__).with_name("space_files")
_FILES = ("README.md", "app.py", "requirements.txt")


def write_space(folder: Path) -> list[Path]:
    """Copies the Space's files into a new or empty folder, and returns their paths.

    Raises:
        ExplorerError: the folder holds something else, or is a file.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExplorerError(f"{folder} is not empty, or is a file; name a new folder for the Space")
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(_FOLDER / name, folder / name)) for name in _FILES]
