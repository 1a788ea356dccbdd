"""How long trainings take on two cores, and their memory: tables of docs/how_long.md, from files of results."""

from __future__ import annotations

import re
from pathlib import Path

from hf_mech.hub import Measurement, Results
from hf_mech.hub.catalogue import catalogue

from .engine.main import TIMES, duration
from .engine.tables import Table

_SCRIPT = re.compile(r"training[./](?:train|run)_(\w+)")


def trainings_table(cards: Path) -> Table:
    """A row a card and preset: the times of its runs, each on one core, and the sizes of its models."""
    table = Table(["`hf-mech train`", "card", "preset", ">runs", ">a run takes", ">parameters"])
    for file in sorted(cards.glob("*/results.json")):
        found = Results.load(file)
        script = _SCRIPT.search(found.command)
        presets: dict[str, list[Measurement]] = {}
        for entry in found.results:
            if entry.metric in TIMES:
                presets.setdefault(entry.setting.get("preset", ""), []).append(entry)
        for preset, entries in presets.items():
            seconds = [value for entry in entries for value in entry.values]
            sizes = sorted({entry.setting["parameters"] for entry in entries if "parameters" in entry.setting})
            name = f"[{file.parent.name}](results/{file.parent.name}/README.md)"
            size = _range([f"{size:,}" for size in sizes])
            time = _range([duration(min(seconds)), duration(max(seconds))])
            table.rows.append([script[1] if script else "", name, preset, str(len(seconds)), time, size])
    return table


def memory_table(file: Path) -> Table:
    """A row a training and preset: the memory that `benchmarks/training_memory.py` has measured."""
    table = Table(["`hf-mech train`", "preset", "options", ">MB"])
    for entry in Results.load(file).results:
        setting, peak = entry.setting, f"{max(entry.values):,.0f}"
        table.rows.append([entry.config or "", setting["preset"], f"`{setting['options']}`", peak])
    return table


def checkpoints_table(folders: Path) -> Table:
    """A row a checkpoint: the time of its training and the size of its file."""
    table = Table(["checkpoint", ">training", ">kB"])
    for entry in catalogue():
        file = folders / entry.name / "results.json"
        if file.is_file():
            seconds = Results.load(file).seconds
            name = f"[{entry.name}](../model_cards/{entry.name}/README.md)"
            table.rows.append([name, duration(seconds), f"{entry.bytes / 1000:,.1f}"])
    return table


def _range(ends: list[str]) -> str:
    return " to ".join(dict.fromkeys([*ends[:1], *ends[-1:]]))
