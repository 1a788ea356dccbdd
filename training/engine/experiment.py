"""What an experiment declares; everything else is the engine's.

An experiment has settings ([`Settings`]), an outcome ([`Outcome`]), a function that trains one run, and says how its
outcomes become cards and tables. In return it gets a command line, presets, seeds, jobs side by side, resumption,
provenance, trackers, cards, README tables and a push to the Hub.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from tqdm.auto import tqdm

from hf_mech.hub.files import write_text_atomically

from .settings import Settings
from .trackers import TRACKERS, Tracker

if TYPE_CHECKING:
    from .arguments import Request
    from .card import Card
    from .tables import Table

S = TypeVar("S", bound=Settings)
OUTCOME_FILE = "outcome.json"


@dataclass(kw_only=True)
class Outcome(Generic[S]):
    """What came of a run, written as `outcome.json` when the run is done. A subclass adds its figures.

    Attributes:
        settings: of the run.
        origin: command, commit, machine and versions of the process that trained it.
        seconds: of training.
    """

    settings: S
    origin: dict[str, Any]
    seconds: float

    def save(self, folder: Path) -> None:
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        write_text_atomically(folder / OUTCOME_FILE, text + "\n")

    @classmethod
    def from_dict(cls, settings: type[S], content: Mapping[str, Any]) -> Self:
        """The outcome that JSON holds."""
        return cls(**{**content, "settings": settings(**content["settings"])})


O = TypeVar("O", bound=Outcome[Any])  # noqa: E741


@dataclass(kw_only=True)
class Options:
    """The options that all experiments share. None of them changes a result."""

    seeds: list[str] = field(default_factory=list, metadata={"help": "seeds, such as 3, or 0,2, or 0..4"})
    num_seeds: int | None = field(default=None, metadata={"help": "so many seeds, counted from 0"})
    preset: list[str] = field(default_factory=list, metadata={"help": "presets of the settings"})
    output_dir: str = field(default="", metadata={"help": "models and outcomes go there"})
    cards_dir: str = field(default="runs/cards", metadata={"help": "results, figures and model cards go there"})
    jobs: int = field(default=0, metadata={"help": "runs trained side by side; 0: one for each core"})
    report_to: list[str] = field(
        default_factory=list, metadata={"help": f"trackers of the training: {', '.join(TRACKERS)}"}
    )
    push_to_hub: bool = field(default=False, metadata={"help": "push each card's checkpoint and the card"})
    hub_user: str | None = field(default=None, metadata={"help": "the user or organization to push to"})
    dry_run: bool = field(
        default=False, metadata={"help": "train nothing; print the runs, and how long similar ones took"}
    )


@dataclass(kw_only=True)
class StepOptions(Options):
    """Options of experiments that train step by step."""

    checkpoint_steps: int = field(default=1_000, metadata={"help": "save a run's state every so many steps"})
    data_workers: int = field(default=0, metadata={"help": "processes a run that make its batches, for a GPU"})


@dataclass(kw_only=True)
class Job:
    """One run while it trains: where it stands, and what it is given.

    Attributes:
        folder: `run.json`, `checkpoint-*/` while it trains, `model/` and `outcome.json` stand there.
        options: the command's.
        origin: what to note as the outcome's origin.
        position: the progress bar's line.
        tracker: takes the figures that the run logs.
        stop_at: leave after this step (or epoch) as if killed, and return None; for tests of resuming.
    """

    folder: Path
    options: Any
    origin: dict[str, Any]
    position: int = 0
    tracker: Tracker = field(default_factory=Tracker)
    stop_at: int | None = None

    def bar(self, total: int, *, initial: int = 0, **more: Any) -> tqdm[Any]:
        """A progress bar on the run's own line; none where nobody looks."""
        nobody = True if int(os.environ.get("LOCAL_RANK", 0)) else None  # None: unless it is a terminal
        more = {"desc": self.folder.name, "leave": False, "disable": nobody, "mininterval": 0.5} | more
        return tqdm(total=total, initial=initial, position=self.position, **more)


class Experiment(ABC, Generic[S, O]):
    """One experiment: a subclass sets the attributes and writes `train` and `cards`.

    Attributes:
        name: runs stand under `runs/<name>`.
        settings, outcome: the classes of its settings and its outcomes.
        shared: classes of settings that all runs of a command share, such as those of the data.
        options: the class of its options.
        unit: what the messages call its runs.
        seeds: how many seeds are run if none is asked for.
        preset: the preset if none is asked for.
        shares_runs: whether processes started by `accelerate launch` share each run.
        forgotten: entries of older outcomes that today's do not have.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Settings]]
    outcome: ClassVar[type[Outcome[Any]]]
    shared: ClassVar[tuple[type[Settings], ...]] = ()
    options: ClassVar[type[Options]] = Options
    unit: ClassVar[str] = "runs"
    seeds: ClassVar[int] = 1
    preset: ClassVar[str] = "cpu"
    shares_runs: ClassVar[bool] = False
    forgotten: ClassVar[tuple[str, ...]] = ()

    def stages(self, request: Request) -> Iterable[Sequence[S]]:
        """The runs that are asked for; those of a later stage may need those of an earlier one.

        Raises:
            SettingsError: the options do not go together.
        """
        yield [self.settings.of(**given) for given in request.combinations()]  # type: ignore[misc]

    @abstractmethod
    def train(self, settings: S, job: Job) -> O | None:
        """Trains one run, or goes on from its last checkpoint; saves the model in `job.folder / "model"`."""

    @abstractmethod
    def cards(self, finished: Mapping[Path, O]) -> Iterable[Card]:
        """The cards of the finished runs.

        Args:
            finished: the outcomes by folder, those of every run of the presets that lies under --output_dir and
                belongs together with the runs asked for (see `belongs`).
        """

    def belongs(self, outcome: O, asked: Sequence[S]) -> bool:
        """Whether the cards take a finished run in, besides those that are asked for: any run of their presets."""
        return outcome.settings.preset in {settings.preset for settings in asked}

    def order(self, outcome: O) -> Any:
        """A key that sorts the outcomes as the tables have them."""
        return outcome.settings.name

    def table(self, finished: Sequence[O]) -> Table | str:
        """The table that the command prints at its end; Markdown if it is text."""
        return ""

    def results(self, cards: Path) -> dict[str, str]:
        """Markdown by the name of the mark under which it stands in the README or in docs/results.

        Args:
            cards: the folder of all cards.
        """
        return {}

    def summary(self, cards: Path) -> list[list[str]]:
        """The experiment's rows of the README's summary: experiment, measure, ours, the paper's, what is reduced."""
        return []

    def upgrade(self, record: dict[str, Any], folder: Path) -> dict[str, Any] | None:
        """Settings of today, as JSON has them, from those that an earlier version of the code left in a folder.

        Returns:
            The settings; the same ones if they are today's, None if they are not of this experiment.
        """
        return record

    def load(self, folder: Path) -> O:
        """The outcome of a finished run."""
        content = json.loads((folder / OUTCOME_FILE).read_text("utf-8"))
        return self.outcome.from_dict(self.settings, content)  # type: ignore[return-value]

    @property
    def folder(self) -> Path:
        """The folder of the experiment's sources: its card template and the paper's figures."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent
