"""The trained checkpoints of the project: their names, and where each is to be loaded from.

A checkpoint's name is that of its folder in `model_cards/`, and of its repository on the Hub. `catalogue.json` comes
from the folders' `checkpoint.json`; `make checkpoints` writes both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from hf_mech.hub.files import HubError, write_text_atomically

ORGANIZATION = "hf_mech"
"""Whose repositories on the Hub the checkpoints are."""

CHECKPOINT_FILE = "checkpoint.json"
"""Beside the weights: where they come from, and what they reached."""

ONE_BATCH_FILE = "one_batch.json"
"""Beside the weights: outputs and gradients of one batch, which the project's tests compare with."""

_PACKAGE = Path(__file__).resolve().parents[1]
MODEL_CARDS = _PACKAGE.parent / "model_cards"
"""The checkpoints' folders in a clone."""

_FOLDERS = (MODEL_CARDS, _PACKAGE / "hub" / "checkpoints")
"""In a clone, and in an installed package, which has the smallest ones."""
_LIST = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """A checkpoint as a list shows it.

    Attributes:
        name: of its folder and its repository.
        task: what it does, in a few words.
        model_type: of its config.
        auto_class: loads it, such as `AutoModelForCausalLM`.
        headline: its figure in words.
        bytes: of its weights.
    """

    name: str
    task: str
    model_type: str
    auto_class: str
    headline: str
    bytes: int


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Every checkpoint of the project, in the order of the table."""
    return tuple(CatalogueEntry(**entry) for entry in json.loads(_LIST.read_text("utf-8")))


def entry_named(name: str) -> CatalogueEntry:
    """A checkpoint by its name.

    Raises:
        HubError: there is none of this name.
    """
    for entry in catalogue():
        if entry.name == name:
            return entry
    raise HubError(f"There is no checkpoint {name!r}; there are {', '.join(entry.name for entry in catalogue())}.")


def source_of(name: str) -> str:
    """What `from_pretrained` takes for a checkpoint: its folder, if this clone or package has it, else its repository.

    Raises:
        HubError: there is none of this name.
    """
    entry_named(name)
    for folder in _FOLDERS:
        if (folder / name / CHECKPOINT_FILE).is_file():
            return str(folder / name)
    return f"{ORGANIZATION}/{name}"


def located(source: str) -> str:
    """What `from_pretrained` takes for a checkpoint's name; any other source, such as a folder, as it is."""
    return source_of(source) if any(entry.name == source for entry in catalogue()) else source


def write_catalogue(folders: Iterable[Path], file: Path = _LIST) -> Path:
    """Writes the list from the checkpoints' folders, in their order."""
    wanted = [field.name for field in fields(CatalogueEntry)]
    entries = []
    for folder in folders:
        content = json.loads((folder / CHECKPOINT_FILE).read_text("utf-8"))
        entries.append(asdict(CatalogueEntry(**{name: content[name] for name in wanted})))
    catalogue.cache_clear()
    return write_text_atomically(file, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
