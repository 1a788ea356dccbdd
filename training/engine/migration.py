"""Runs that earlier versions of the code left under --output_dir: read once, and written as today's.

Before, the settings were in `run.json` or `cell.json` (or only in the outcome), the outcome repeated them as `run`,
`cell` or `part`, and the folder's name did not always tell all departures from the preset.

A kill in between does no harm: the folder is renamed first, the files are written whole, and what is left is brought by
the next command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hf_mech.hub.files import held, write_text_atomically

from .experiment import Experiment
from .run import OUTCOME_FILE, files_named
from .runner import RUN_FILE
from .settings import Settings, SettingsError

_CELL_FILE = "cell.json"
_REPEATED = ("run", "cell", "part")


def migrate(experiment: Experiment[Any, Any], output_dir: Path) -> list[Path]:
    """Brings every older run into today's form; nothing is trained again. Runs of today are left as they are.

    Returns:
        The folders of the runs that were brought.

    Raises:
        FileExistsError: two folders hold the same run.
    """
    if not any(True for _ in _older(experiment, output_dir)):
        return []
    with held(output_dir, wait=True):  # another command may be bringing them
        return [_bring(experiment, file, settings, output_dir) for file, settings in [*_older(experiment, output_dir)]]


def _older(experiment: Experiment[Any, Any], output_dir: Path) -> Iterator[tuple[Path, Settings]]:
    """The older runs: the file that holds the settings, and those settings as today's."""
    notes = {file.parent: file for name in (_CELL_FILE, RUN_FILE) for file in sorted(files_named(output_dir, name))}
    for folder, note in notes.items():
        before, outcome = _read(note), folder / OUTCOME_FILE
        settings = _settings(experiment, before, folder)
        if settings is None or (output_dir / settings.name).parent != folder.parent:
            continue
        changed = (settings.name.rpartition("/")[2], before) != (folder.name, settings.to_dict())
        if "settings" not in _read(outcome) if outcome.exists() else changed:
            yield note, settings
    for file in sorted(files_named(output_dir, "*.json")):  # a part of a split was one file
        if file.stem.isdigit() and "part" in (content := _read(file)):
            settings = _settings(experiment, content, file.parent)
            if settings is not None and (output_dir / settings.name).parent == file.parent:
                yield file, settings


def _read(file: Path) -> dict[str, Any]:
    """The file's content; nothing if it is no JSON object, so no run of ours, or was removed meanwhile."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (ValueError, FileNotFoundError):
        return {}
    return content if isinstance(content, dict) else {}


def _settings(experiment: Experiment[Any, Any], record: dict[str, Any], folder: Path) -> Settings | None:
    """The settings of an older record; None if they make no run today, so that the folder is left alone."""
    try:
        upgraded = experiment.upgrade(record, folder)
        return None if upgraded is None else experiment.settings(**upgraded)
    except (SettingsError, TypeError):
        return None


def _bring(experiment: Experiment[Any, Any], file: Path, settings: Settings, output_dir: Path) -> Path:
    folder, target = file.parent, output_dir / settings.name
    alone = file.name not in (_CELL_FILE, RUN_FILE)
    if alone:
        target.mkdir(parents=True, exist_ok=True)
        outcome = file
    else:
        if target != folder:
            if target.exists():
                raise FileExistsError(f"{folder} and {target} hold the same run; remove one of them.")
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
        outcome = target / OUTCOME_FILE
    if outcome.exists():
        gone = {*_REPEATED, *experiment.forgotten}
        done = {name: value for name, value in _read(outcome).items() if name not in gone}
        _write(target / OUTCOME_FILE, {"settings": settings.to_dict(), **done})
    _write(target / RUN_FILE, settings.to_dict())
    (file if alone else target / _CELL_FILE).unlink(missing_ok=True)
    return target


def _write(file: Path, content: dict[str, Any]) -> None:
    write_text_atomically(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
