"""Cards: from finished runs to results.json, pictures, card.yaml, README.md and a checkpoint that can be pushed.

The text of a card is a template beside the experiment, `card.md`, in Jinja: its blocks `title`, `summary`, `usage` and
`limitations` are the card's sections, with the variables that the experiment gives.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image

from hf_mech.hub import HubError, Measurement, Results, push_checkpoint, render_folder
from hf_mech.hub.bibliography import bibtex
from hf_mech.hub.card import figures_of
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.files import replacing, write_text_atomically
from hf_mech.hub.redaction import redact

from .run import Outcome
from .settings import SettingsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from transformers import PreTrainedModel

BLOCKS = ("title", "summary", "usage", "limitations")
_DPI = 110
_COLOURS = 128  # of a picture of a few lines and areas: a third of the bytes


@dataclass(frozen=True)
class Checkpoint:
    """The model that goes with a card, its tokenizer or processor, and further files of the checkpoint."""

    model: PreTrainedModel
    processing_class: Any = None
    files: Sequence[Path] = ()


@dataclass(kw_only=True)
class Card:
    """What a card says.

    Attributes:
        name: of the card's folder, and of the repository on the Hub.
        outcomes: the runs behind it.
        measured: their figures.
        text: the variables of the template.
        model_class: the class to load the checkpoint with.
        paper: the paper's key in the bibliography; by default the experiment's.
        task: the Hub's name of the task.
        tags: the Hub's tags.
        headline: the metrics that stand in the card's metadata.
        figures: picture's file name to picture, or the bytes of its file, and caption.
        files: further files of text, by name; they are pushed too.
        checkpoint: the model that goes with the card.
        seconds: what the runs took; by default the sum of their seconds.
    """

    name: str
    outcomes: Sequence[Outcome[Any]]
    measured: list[Measurement]
    text: Mapping[str, Any]
    model_class: str
    task: str
    paper: str = ""
    tags: Sequence[str] = ()
    headline: Sequence[str] = ()
    figures: Mapping[str, tuple[Figure | bytes, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    seconds: float | None = None

    def write(self, template: Path, folder: Path, command: str | None = None) -> None:
        """Writes the card's folder whole. Every file is replaced in one step.

        Args:
            template: the text.
            folder: of the card.
            command: repeats the runs; by default those that did them, one after the other.
        """
        folder.mkdir(parents=True, exist_ok=True)
        seconds = self.seconds if self.seconds is not None else sum(outcome.seconds for outcome in self.outcomes)
        origin = common_origin(outcome.origin for outcome in self.outcomes)
        origin |= {"command": command} if command else {}
        Results(name=self.name, **origin, seconds=seconds, results=self.measured).save(folder / "results.json")
        for name, (figure, _) in self.figures.items():
            with replacing(folder / name) as aside:
                if isinstance(figure, bytes):
                    aside.write_bytes(figure)
                else:
                    _save_small(figure, aside)
        for old in figures_of(folder):
            if old not in self.figures:
                (folder / old).unlink()
        for name, text in self.files.items():
            write_text_atomically(folder / name, text)
        write_text_atomically(folder / "card.yaml", self._yaml(template))
        render_folder(folder)

    def _yaml(self, template: Path) -> str:
        sections = render_blocks(template, {"name": self.name, **self.text})
        content = {
            "title": sections["title"].strip(),
            "model_class": self.model_class,
            "summary": sections["summary"],
            "usage": sections["usage"],
            "limitations": sections["limitations"],
            "citation": bibtex(self.paper).strip(),
            "tags": ["hf_mech", *self.tags],
            "task": self.task,
            "headline": list(self.headline),
            "captions": {name: caption for name, (_, caption) in self.figures.items()},
        }
        written = yaml.dump(redact(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=116)
        return f"# Generated from {template.parent.name}/{template.name} and the runs; edit the template.\n{written}"

    def save_checkpoint(self, folder: Path) -> None:
        """Saves the card's checkpoint, if it has one, so that it loads where hf_mech is not installed."""
        if self.checkpoint is not None:
            save_checkpoint(self.checkpoint.model, folder, processing_class=self.checkpoint.processing_class)
            for path in self.checkpoint.files:
                with replacing(folder / path.name) as aside:
                    shutil.copyfile(path, aside)

    def push(self, folder: Path, user: str) -> None:
        """Pushes the card's checkpoint and its folder, if it has a checkpoint."""
        if self.checkpoint is not None:
            push_checkpoint(
                self.checkpoint.model,
                f"{user}/{self.name}",
                processing_class=self.checkpoint.processing_class,
                card_folder=folder,
                extra_files={
                    **{name: folder / name for name in self.files},
                    **{path.name: path for path in self.checkpoint.files},
                },
            )


def _save_small(figure: Figure, file: Path) -> None:
    """Saves a picture with a palette."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=_DPI, format="png")
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(file, "png", optimize=True)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they read, behind `|`."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def render_blocks(template: Path, values: Mapping[str, Any]) -> dict[str, str]:
    """The sections of a card's template, without blank lines around them.

    Raises:
        HubError: the template has a block that is none of [`BLOCKS`].
        jinja2.UndefinedError: the template has a variable that has no value.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    loaded = environment.get_template(template.name)
    context = loaded.new_context(dict(values))
    if unknown := loaded.blocks.keys() - set(BLOCKS):
        raise HubError(f"{template} has the blocks {', '.join(sorted(unknown))}; expected {', '.join(BLOCKS)}.")
    sections = {name: "".join(loaded.blocks[name](context)).strip() if name in loaded.blocks else "" for name in BLOCKS}
    return {name: f"{text}\n" if text else "" for name, text in sections.items()}


def common_origin(origins: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The commands, commits and machines that trained several runs, with the one set of versions that did.

    Of machines with several numbers of cores the least is named.

    Raises:
        SettingsError: the versions differ.
    """
    origins = list(origins)
    versions, machines = origins[0]["versions"], [origin["machine"] for origin in origins]
    for origin in origins:
        if origin["versions"] != versions:
            raise SettingsError(
                f"Runs of {versions} and of {origin['versions']} cannot share a card; train them into another "
                "--output_dir."
            )

    def named(values: Iterable[Any], between: str = ", ") -> str:
        return between.join(dict.fromkeys(value for value in values if value))

    return {
        "command": named((origin["command"] for origin in origins), " && "),
        "commit": named(origin["commit"] for origin in origins),
        "machine": {
            "cpu": named(machine["cpu"] for machine in machines),
            "gpu": named(machine["gpu"] for machine in machines) or None,
            "cores": min(machine["cores"] for machine in machines),
        },
        "versions": versions,
    }
