"""The views of the explorer: one module for each kind of model. A module is found by being here, and has `VIEW`."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from .errors import ExplorerError


class Example(NamedTuple):
    """What a run of a source may read: its text, and its settings."""

    text: str = ""
    settings: str = ""


class View(ABC):
    """A model's mechanism as a page.

    Attributes:
        name: of the view's tab.
        about: a sentence on what the page shows.
        model_types: the checkpoints that it reads.
        sources: names of sources besides checkpoints; the first is open at the start.
        source_label, text_label, settings_label: of the three fields; no settings if the last is empty.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    model_types: ClassVar[Sequence[str]]
    sources: ClassVar[Sequence[str]] = ()
    source_label: ClassVar[str] = "Checkpoint"
    text_label: ClassVar[str]
    settings_label: ClassVar[str] = ""

    def example(self, source: str) -> Example:
        """A run of this source; an empty text if there is none."""
        return Example()

    def written(self, source: str) -> str:
        """The source's own text for an editor, such as a program; empty if it has none."""
        return ""

    @abstractmethod
    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """The page of a run, as HTML.

        Args:
            source: one of `sources`, a checkpoint's folder, or a repository on the Hub.
            text: what the run reads.
            settings: further input, in the view's own form.
            written: replaces the source's own text.

        Raises:
            ValueError: no such source, or a text that the model cannot read; the message is for the reader.
        """


def all_views() -> list[View]:
    """Every view; those that can show something without a checkpoint come first."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name != "errors")
    views: list[View] = [importlib.import_module(f"{__name__}.{name}").VIEW for name in names]
    return sorted(views, key=lambda view: not view.sources)


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
    for view in all_views():
        if source in view.sources or view.written(source):
            return view
    from transformers import AutoConfig

    try:
        model_type = AutoConfig.from_pretrained(source).model_type
    except (OSError, ValueError) as error:
        names = ", ".join(name for view in all_views() for name in view.sources)
        raise ExplorerError(
            f"{source!r} is no checkpoint's folder, no repository on the Hub, no file of PSL, and none of {names}: "
            f"{error}"
        ) from error
    return view_of(model_type)


__all__ = ["Example", "ExplorerError", "View", "all_views", "view_for", "view_of"]
