"""What an experiment declares; everything else is the engine's.

An experiment has settings ([`Settings`]), an outcome ([`Outcome`]), a function that trains one run, and says how its
outcomes become cards and tables. In return it gets a command line, presets, seeds, jobs side by side, resumption,
provenance, trackers, cards, README tables and a push to the Hub.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from hf_mech.hub.checkpoint import load_checkpoint, load_processing_class

from .arguments import Options, Request
from .card import Card, Checkpoint
from .own_data import TEMPLATE, OwnData, own_card, own_table
from .run import OUTCOME_FILE, Job, Outcome, files_named
from .settings import Settings
from .tables import Table

S = TypeVar("S", bound=Settings)
O = TypeVar("O", bound=Outcome[Any])  # noqa: E741


class Experiment(ABC, Generic[S, O]):
    """One experiment: a subclass sets the attributes and writes `train`.

    Attributes:
        report: the module with the functions `card`, `order`, `table`, `results` and `summary`, if these are not the
            subclass's own.
        name: runs stand under `runs/<name>`.
        paper: its paper's key in the bibliography.
        settings, outcome: the classes of its settings and its outcomes.
        shared: classes of settings that all runs of a command share, such as those of the data.
        options: the class of its options.
        unit: what the messages call its runs.
        seeds: how many seeds are run if none is asked for.
        preset: the preset if none is asked for.
        shares_runs: whether processes started by `accelerate launch` share each run.
    """

    report: ModuleType
    name: str
    paper: str
    settings: type[Settings]
    outcome: type[Outcome[Any]]
    shared: tuple[type[Settings], ...] = ()
    options: type[Options] = Options
    unit: str = "runs"
    seeds: int = 1
    preset: str = "cpu"
    shares_runs: bool = False

    def stages(self, request: Request) -> Iterable[Sequence[S]]:
        """The runs that are asked for; those of a later stage may need those of an earlier one.

        Raises:
            SettingsError: the options do not go together.
        """
        yield [self.settings.of(**given) for given in request.combinations()]  # type: ignore[misc]

    def chosen_by(self, settings: S, /) -> dict[str, Any]:
        """Values of options of the command that choose this run and no other; here none. None drops an option."""
        return {}

    def reads(self, settings: S, /) -> Iterable[str]:
        """The folders under --output_dir, besides its own, that the run reads; here none."""
        return ()

    @abstractmethod
    def train(self, settings: S, job: Job, /) -> O | None:
        """Trains one run, or goes on from its last checkpoint; saves the model in `job.saving()`."""

    def shares_card(self, settings: S, /) -> Hashable:
        """A key that is the same for runs that share a card: here the preset."""
        return settings.preset

    def card_key(self, settings: S, /) -> Hashable:
        """A key of the card: that of [`shares_card`], or the user's data set."""
        own = isinstance(settings, OwnData) and settings.own_data
        return ("own", own, settings.preset) if own else self.shares_card(settings)

    def card(self, finished: Mapping[Path, O], /) -> Card:
        """The card of finished runs.

        Args:
            finished: the outcomes by folder, in the order of the tables: all runs under --output_dir that share a card
                with runs that were asked for.
        """
        return replace(self.report.card(finished), paper=self.paper)

    def card_and_table(self, finished: Mapping[Path, O], /) -> tuple[Card, Table | str, Path]:
        """The card, the table that the command prints, and the template of the card's text."""
        outcomes = list(finished.values())
        if isinstance(first := outcomes[0].settings, OwnData) and first.own_data:
            checkpoint = Checkpoint(*self.load_model(next(iter(finished)), outcomes[0]))
            return own_card(self.name, self.paper, outcomes, checkpoint), own_table(outcomes), TEMPLATE
        return self.card(finished), self.table(outcomes), self.folder / "card.md"

    def order(self, outcome: O, /) -> Any:
        """A key that sorts the outcomes as the tables have them."""
        return self.report.order(outcome)

    def table(self, finished: Sequence[O], /) -> Table | str:
        """The table that the command prints at its end; Markdown if it is text."""
        return self.report.table(finished)

    def results(self, cards: Path, /) -> dict[str, str]:
        """Markdown by the name of its marks in the README or in docs/results.

        Args:
            cards: the folder of all cards.
        """
        return self.report.results(cards)

    def summary(self, cards: Path, /) -> list[list[str]]:
        """The experiment's rows of the README's summary: experiment, measure, ours, the paper's, what is reduced."""
        return self.report.summary(cards)

    def load_model(self, folder: Path, outcome: O, /) -> tuple[Any, Any]:
        """The model of a finished run, and its tokenizer or processor."""
        return load_checkpoint(folder / "model"), load_processing_class(folder / "model")

    def load(self, folder: Path) -> O:
        """The outcome of a finished run."""
        content = json.loads((folder / OUTCOME_FILE).read_text("utf-8"))
        return self.outcome.from_dict(self.settings, content)  # type: ignore[return-value]

    def finished_under(self, output_dir: Path) -> Iterator[tuple[Path, O]]:
        """This experiment's finished runs under a folder, which others may share: their settings have other names."""
        entries = fields(self.settings)
        required = {entry.name for entry in entries if entry.default is entry.default_factory is MISSING}
        known = {entry.name for entry in entries}
        for file in files_named(output_dir, OUTCOME_FILE):
            if required <= json.loads(file.read_text("utf-8"))["settings"].keys() <= known:
                yield file.parent, self.load(file.parent)

    @property
    def folder(self) -> Path:
        """The folder of the experiment's sources: its card template and the paper's figures."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent
