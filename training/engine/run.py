"""One run: the job while it trains, the state that an interrupted one goes on from, and the outcome at its end."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from accelerate import Accelerator
from tqdm.auto import tqdm

from hf_mech.hub.files import write_text_atomically
from hf_mech.hub.redaction import redact

from .settings import Settings
from .trackers import Tracker

S = TypeVar("S", bound=Settings)
AnyOutcome = TypeVar("AnyOutcome")
OUTCOME_FILE = "outcome.json"
_ASIDE = "saving"


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
        text = json.dumps(redact(asdict(self)), indent=1, ensure_ascii=False)
        write_text_atomically(folder / OUTCOME_FILE, text + "\n")

    @classmethod
    def from_dict(cls, settings: type[S], content: Mapping[str, Any]) -> Self:
        """The outcome that JSON holds."""
        return cls(**{**content, "settings": settings(**content["settings"])})


@dataclass(kw_only=True)
class TrainedOutcome(Outcome[S]):
    """The outcome of a run that trains a model step by step.

    Attributes:
        parameters: of the model.
        steps: that were done, at most the run's.
        seconds_of_test: after the training.
        losses: the training loss, the mean of each hundredth of the run's steps.
    """

    parameters: int
    steps: int
    seconds_of_test: float
    losses: list[float]


@dataclass(kw_only=True)
class CompletionsOutcome(TrainedOutcome[S]):
    """The outcome of a run whose completions of a data set's prompts are right or wrong.

    Attributes:
        right: by split, the completions that are right in every word, and end there.
        measured: by split, the prompts that were measured.
    """

    right: dict[str, int]
    measured: dict[str, int]

    @property
    def exact_match(self) -> dict[str, float]:
        """The share of right completions, by split."""
        return {split: self.right[split] / of for split, of in self.measured.items()}


def by_setting(
    outcomes: Iterable[AnyOutcome], order: Callable[[AnyOutcome], tuple[Any, ...]]
) -> list[list[AnyOutcome]]:
    """The outcomes in their order, those that differ in the seed alone together: the last entry of `order`."""
    ordered = sorted(outcomes, key=order)
    return [list(members) for _, members in groupby(ordered, key=lambda outcome: order(outcome)[:-1])]


def files_named(folder: Path, *patterns: str) -> Iterator[Path]:
    """The files under a folder whose name matches a pattern, while other processes make and remove folders there."""
    for root, folders, files in os.walk(folder):  # pathlib's rglob fails at a folder that is removed meanwhile
        folders.sort()
        for name in sorted(files):
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield Path(root, name)


def save_state(accelerator: Accelerator, folder: Path, step: int) -> None:
    """Saves the accelerate state: written aside, then renamed, and only then are older ones removed."""
    older = list(folder.glob("checkpoint-*"))
    aside = folder / _ASIDE
    if accelerator.is_main_process:
        shutil.rmtree(aside, ignore_errors=True)  # a killed run's
    accelerator.wait_for_everyone()
    accelerator.save_state(str(aside))
    accelerator.wait_for_everyone()  # every process writes its part
    if accelerator.is_main_process:
        aside.rename(folder / f"checkpoint-{step}")
        for checkpoint in older:
            shutil.rmtree(checkpoint)
    accelerator.wait_for_everyone()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is whole, or None."""
    return max(folder.glob("checkpoint-*"), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The step at which a checkpoint was saved."""
    return int(checkpoint.name.split("-")[1])


def remove_checkpoints(folder: Path) -> None:
    """Removes every checkpoint, also a half-written one."""
    for leftover in [*folder.glob("checkpoint-*"), *folder.glob(_ASIDE)]:
        shutil.rmtree(leftover)
