"""Runs that earlier versions of the code left under --output_dir: read once, and written as today's.

Before, the settings stood in `run.json` or `cell.json` (or only in the outcome), the outcome repeated them as `run`,
`cell` or `part`, and the folder's name did not always tell all departures from the preset.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hf_mech.hub.files import write_text_atomically

from .experiment import Experiment
from .run import OUTCOME_FILE
from .runner import RUN_FILE
from .settings import SettingsError

_NOTES = (RUN_FILE, "cell.json")
_REPEATED = ("run", "cell", "part")


def migrate(experiment: Experiment[Any, Any], output_dir: Path) -> list[Path]:
    """Brings every older run into today's form; nothing is trained again. Runs of today are left as they are.

    Returns:
        The folders of the runs that were brought.
    """
    return [_bring(experiment, *found, output_dir) for found in list(_older_runs(experiment, output_dir))]


def _older_runs(
    experiment: Experiment[Any, Any], output_dir: Path
) -> Iterator[tuple[Path, dict[str, Any], Path | None]]:
    """The file that holds an older run's settings, those settings, and the outcome's file if the run is done."""
    for note in sorted(path for name in _NOTES for path in output_dir.rglob(name)):
        outcome = note.with_name(OUTCOME_FILE)
        done = outcome.exists()
        if done and "settings" in json.loads(outcome.read_text("utf-8")):
            continue
        before = json.loads(note.read_text("utf-8"))
        after = experiment.upgrade(before, note.parent)
        name = None if after is None else _name_of(experiment, after)
        if (
            name
            and after
            and (done or (output_dir / name, note, after) != (note.parent, note.with_name(RUN_FILE), before))
        ):
            yield note, after, outcome if done else None
    for file in sorted(output_dir.rglob("*.json")):  # a part of a split was one file
        if file.stem.isdigit():
            content = json.loads(file.read_text("utf-8"))
            if "part" in content and (after := experiment.upgrade(content, file.parent)) is not None:
                yield file, after, file


def _name_of(experiment: Experiment[Any, Any], content: dict[str, Any]) -> str | None:
    """The name of a run with these settings; None if they make no run today, so that the folder is left alone."""
    try:
        return experiment.settings(**content).name
    except (SettingsError, TypeError):
        return None


def _bring(
    experiment: Experiment[Any, Any], note: Path, content: dict[str, Any], outcome: Path | None, output_dir: Path
) -> Path:
    settings = experiment.settings(**content)
    prefix = note.parent.parent.relative_to(output_dir)
    target = output_dir / settings.name
    if target.exists() and target != note.parent:
        raise FileExistsError(f"{note.parent} and {target} hold the same run ({prefix}); remove one of them.")
    written = None
    if outcome is not None:
        done = json.loads(outcome.read_text("utf-8"))
        done = {name: value for name, value in done.items() if name not in (*_REPEATED, *experiment.forgotten)}
        written = json.dumps({"settings": settings.to_dict(), **done}, indent=1, ensure_ascii=False)
    if note == outcome:
        target.mkdir(parents=True)
    elif target != note.parent:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(note.parent, target)
    if written is not None:
        write_text_atomically(target / OUTCOME_FILE, written + "\n")
    write_text_atomically(target / RUN_FILE, json.dumps(settings.to_dict(), indent=1, ensure_ascii=False) + "\n")
    for old in (target / "cell.json", note if note == outcome else None):
        if old is not None:
            old.unlink(missing_ok=True)
    return target
