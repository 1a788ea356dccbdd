"""Renders README.md, model_cards, docs/results and its cards, from the runs' docs/results/*/results.json.

    python -m training.render_readme            # writes
    python -m training.render_readme --check    # writes nothing; exits with 1 if a file is out of date

A table stands between two marks, `<!-- begin NAME: ... -->` and `<!-- end NAME -->`. Every experiment gives its tables
by name, and its rows of the summary.
"""

if not __package__:  # started as a file: `python training/render_readme.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

import argparse
import importlib
import importlib.util
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hf_mech.hub import HubError, check_folder, render_folder
from hf_mech.hub.catalogue import catalogue
from hf_mech.hub.files import write_text_atomically

from .engine import Experiment
from .engine.recipe import Checkpoints
from .engine.tables import Table
from .how_long import checkpoints_table as how_long_of_checkpoints
from .how_long import memory_table, trainings_table

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = "summary"
_MARKED = re.compile(r"(<!-- begin ([\w-]+):[^>]*-->\n)(.*?)(<!-- end \2 -->)", re.DOTALL)


def experiments() -> Iterator[Experiment[Any, Any]]:
    """Every experiment of this package: a folder with a module `experiment`."""
    for folder in pkgutil.iter_modules([str(ROOT / "training")]):
        if folder.ispkg and folder.name != "engine":
            yield importlib.import_module(f".{folder.name}.experiment", __package__).EXPERIMENT


def checkpoint_shelves() -> Iterator[Checkpoints[Any, Any]]:
    """The checkpoints of every experiment that has some: a module `checkpoints` beside its `experiment`."""
    for experiment in experiments():
        name = f"{type(experiment).__module__.rpartition('.')[0]}.checkpoints"
        if importlib.util.find_spec(name) is not None:
            yield importlib.import_module(name).CHECKPOINTS


def tables_of(cards: Path) -> dict[str, str]:
    """Every table in Markdown by the name of its marks."""
    found: dict[str, str] = {}
    summary = Table(["experiment", "measured", "ours", "the paper's", "reduced"])
    for experiment in experiments():
        found |= experiment.results(cards)
        summary.rows += experiment.summary(cards)
    return found | {SUMMARY: summary.markdown()}


def checkpoints_table() -> Table:
    """Every trained model of the catalogue: what it does, its figure, its size, what loads it."""
    table = Table(["model", "what it does", "measured", ">kB", "loads as"])
    for entry in catalogue():
        kilobytes = f"{max(entry.bytes / 1000, 0.1):,.1f}" if entry.bytes < 10_000 else f"{entry.bytes / 1000:,.0f}"
        cells = [
            f"[{entry.name}]({entry.name}/README.md)",
            entry.task,
            entry.headline,
            kilobytes,
            f"`{entry.auto_class}`",
        ]
        table.rows.append(cells)
    return table


def versions_table(file: Path) -> Table:
    """What `make wheel-check` has found in environments of their own."""
    found = json.loads(file.read_text("utf-8")) if file.is_file() else []
    names = ("python", "torch", "transformers", "datasets", "accelerate", "huggingface_hub")
    table = Table([*names, "tried there by `hf-mech train`", ">contract tests"])
    for one in found:
        versions = [one["versions"].get(name, "") for name in names]
        table.rows.append([*versions, ", ".join(one["trained"]), str(one["contract_tests_passed"])])
    return table


def render(text: str, tables: dict[str, str]) -> str:
    """The text with each table between its marks.

    Raises:
        ValueError: no experiment gives a table that the text has marks for.
    """

    def replace(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        if name not in tables:
            raise ValueError(f"No experiment gives a table {name!r}; there are {', '.join(sorted(tables))}.")
        return f"{begin}{tables[name]}\n{end}"

    return _MARKED.sub(replace, text)


def stale_cards(cards: Path, check: bool) -> Iterator[str]:
    """The card folders whose README.md is not the rendering of their results.json; rendered unless this is a check."""
    for folder in sorted(path.parent for path in cards.glob("*/results.json")):
        try:
            check_folder(folder)
        except HubError:
            yield folder.relative_to(cards.parents[1]).as_posix()
            if not check:
                render_folder(folder)


def main(root: Path = ROOT) -> int:
    """Renders README.md, docs/results/*.md and the cards in docs/results; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check = parser.parse_args().check
    tables = tables_of(root / "docs" / "results")
    stale = list(stale_cards(root / "docs" / "results", check))
    files = [root / "README.md", *sorted((root / "docs" / "results").glob("*.md"))]
    tables["versions"] = versions_table(root / "hf_mech" / "hub" / "tested_versions.json").markdown()
    if (root / "docs" / "how_long.md").is_file():
        files.append(root / "docs" / "how_long.md")
        tables["how-long"] = trainings_table(root / "docs" / "results").markdown()
        tables["memory"] = memory_table(root / "benchmarks" / "training_memory.json").markdown()
        tables["how-long-checkpoints"] = how_long_of_checkpoints(root / "model_cards").markdown()
    if (root / "model_cards" / "README.md").is_file():
        files.append(root / "model_cards" / "README.md")
        tables["checkpoints"] = checkpoints_table().markdown()
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    named = {match[2] for text in texts.values() for match in _MARKED.finditer(text)}
    if homeless := sorted(name for name, table in tables.items() if table and name not in named):
        raise ValueError(f"No file has marks for the tables {', '.join(homeless)}; write them where they belong.")
    for file, text in texts.items():
        rendered = render(text, tables)
        if rendered != text:
            stale.append(file.relative_to(root).as_posix())
            if not check:
                write_text_atomically(file, rendered)
    if check and stale:
        print(f"Out of date: {', '.join(stale)}. Run: python -m training.render_readme")
    return int(check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
