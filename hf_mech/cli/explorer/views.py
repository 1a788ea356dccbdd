"""The views of the explorer: a subject's room has one if it holds a module `explorer_view`, with `VIEW`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import hf_mech
from hf_mech.hub.catalogue import catalogue, located
from hf_mech.viz.view import ExplorerError, View

_MODULE = "explorer_view"


def _rooms() -> Iterator[Path]:
    """Their folders. To look for the module itself would import each room."""
    for folder in map(Path, hf_mech.__path__):
        yield from (room for room in folder.iterdir() if room.is_dir())


@cache
def all_views() -> tuple[View, ...]:
    """Every view, in the order of the tabs."""
    found = [room / f"{_MODULE}.py" for room in _rooms()]
    names = sorted(f"hf_mech.{file.parent.name}.{_MODULE}" for file in found if file.is_file())
    views: list[View] = [importlib.import_module(name).VIEW for name in names]
    return tuple(sorted(views, key=lambda view: view.rank))


def view_of(model_type: str) -> View:
    """The view of a checkpoint.

    Raises:
        ExplorerError: no view reads such models.
    """
    for view in all_views():
        if model_type in view.model_types:
            return view
    known = sorted(known for view in all_views() for known in view.model_types)
    raise ExplorerError(
        f"the explorer has no view of models of type {model_type!r}; it has views of {', '.join(known)}"
    )


def view_for(source: str) -> View:
    """The view that reads a source: one that knows its name, or the one of the checkpoint's model type.

    Raises:
        ExplorerError: there is no such source, or no view of it.
    """
    for entry in catalogue():
        if entry.name == source:
            return view_of(entry.model_type)
    for view in all_views():
        if source in view.sources or view.written(source):
            return view
    from transformers import AutoConfig

    try:
        model_type = AutoConfig.from_pretrained(located(source)).model_type
    except (OSError, ValueError) as error:
        names = ", ".join(name for view in all_views() for name in menu(view))
        raise ExplorerError(
            f"{source!r} is no checkpoint's folder, no repository on the Hub, no file of PSL, and none of {names}: "
            f"{str(error).strip().partition(chr(10))[0]}"
        ) from error
    return view_of(model_type)


def menu(view: View) -> list[str]:
    """What a view's menu of sources offers: its own ones, then the project's checkpoints."""
    return [*view.sources, *view.ordered([entry.name for entry in catalogue() if entry.model_type in view.model_types])]


def compared(view: View) -> Sequence[str]:
    """What may be shown beside a source of the view: its menu, and the baselines."""
    others = [name for other in all_views() if other.compared and other is not view for name in menu(other)]
    return [*menu(view), *others]
