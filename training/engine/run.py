"""One run: its trackers, the job while it trains, the state it goes on from, and the outcome at its end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
from accelerate.utils import broadcast_object_list
from tqdm.auto import tqdm

from hf_mech.hub.files import remove, replacing, write_text_atomically
from hf_mech.hub.redaction import redact

from .settings import Settings, SettingsError, check_names

S = TypeVar("S", bound=Settings)
AnyOutcome = TypeVar("AnyOutcome")
OUTCOME_FILE = "outcome.json"
TRACKING = "tracking"  # the folder of the trackers' files


class RunError(RuntimeError):
    """A run without an outcome: its loss is no number, its process was killed, or another process trains it."""


# ------------------------------------------------------------------------------------------------------------- trackers

TRACKERS = ("tensorboard", "wandb", "trackio")
"""The trackers that the options name. They run without a network too: tensorboard and trackio always, wandb with
WANDB_MODE=offline."""


class Tracker:
    """Hands figures on to each of accelerate's trackers that was asked for; without any it does nothing.

    Args:
        names: of [`TRACKERS`].
        project: the experiment's name.
        run: the run's name.
        folder: trackers that write files write them there.
        settings: of the run.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        project: str = "",
        run: str = "",
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.trackers: list[GeneralTracker] = []
        for name in names:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            given: dict[str, dict[str, Any]] = {
                "tensorboard": {"run_name": run, "logging_dir": folder},
                "wandb": {"run_name": project, "name": run, "dir": folder, "settings": _wandb_settings()},
                "trackio": {"run_name": project, "name": run},
            }
            tracker = LOGGER_TYPE_TO_CLASS[name](**given[name])
            tracker.start()
            tracker.store_init_configuration(
                {key: _plain(value) for key, value in redact(dict(settings or {})).items()}
            )
            self.trackers.append(tracker)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs the values of one step."""
        for tracker in self.trackers:
            tracker.log(dict(values), step=step)

    def finish(self) -> None:
        """Ends the trackers; what they hold back is written."""
        for tracker in self.trackers:
            tracker.finish()


def _wandb_settings() -> dict[str, Any]:
    """wandb notes the command line itself: not where it holds a secret."""
    return {"x_disable_meta": redact(sys.argv) != sys.argv}


def check_trackers(names: Iterable[str]) -> None:
    """Refuses trackers that are not known or not installed, before any run starts.

    Raises:
        SettingsError: such a tracker.
    """
    names = list(names)
    check_names(names, TRACKERS, "--report_to")
    if missing := [name for name in names if find_spec(name) is None]:
        raise SettingsError(f"--report_to {' '.join(missing)}: not installed. Do so: pip install {' '.join(missing)}")


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool) else str(value)


# ------------------------------------------------------------------------------------------------------ job and outcome


@dataclass(kw_only=True)
class Job:
    """One run while it trains: where it stands, and what it is given.

    Attributes:
        folder: `run.json`, `checkpoint-*/` while it trains, `model/` and `outcome.json` stand there.
        options: the command's.
        origin: what to note as the outcome's origin.
        config: the options that make the run, for `run.yaml`.
        position: the progress bar's line.
        tracker: takes the figures that the run logs.
        stop_at: leave after this step (or epoch) as if killed, and return None; for tests of resuming.
    """

    folder: Path
    options: Any
    origin: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    position: int = 0
    tracker: Tracker = field(default_factory=Tracker)
    stop_at: int | None = None

    def bar(self, total: int, *, initial: int = 0, **more: Any) -> tqdm[Any]:
        """A progress bar on the run's own line; none where nobody looks."""
        nobody = True if int(os.environ.get("LOCAL_RANK", 0)) else None  # None: unless it is a terminal
        more = {"desc": self.folder.name, "leave": False, "disable": nobody, "mininterval": 0.5} | more
        return tqdm(total=total, initial=initial, position=self.position, **more)

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """A folder for the trained model, which is `model/` as soon as all of it is written.

        Raises:
            OutputError: the disk is full or cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / "model") as aside:
            yield aside


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

    @property
    def own_figures(self) -> dict[str, float]:
        """The figures of a run on a data set of the user's, by name."""
        raise NotImplementedError

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

    @property
    def own_figures(self) -> dict[str, float]:
        return {f"exact_match on {split}": share for split, share in self.exact_match.items()}


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


# ---------------------------------------------------------------------------------------------------------- checkpoints


def save_state(accelerator: Accelerator, folder: Path, step: int) -> None:
    """Saves the accelerate state whole, and only then removes older ones."""
    older = list(folder.glob("checkpoint-*"))
    with ExitStack() as main_process:
        where = [folder]
        if accelerator.is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            where = [main_process.enter_context(replacing(folder / f"checkpoint-{step}"))]
        if accelerator.num_processes > 1:
            broadcast_object_list(where)  # every process writes its part there
        accelerator.save_state(str(where[0]))
        accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        for checkpoint in older:
            remove(checkpoint)
    accelerator.wait_for_everyone()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is whole, or None."""
    return max(folder.glob("checkpoint-*"), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The step at which a checkpoint was saved."""
    return int(checkpoint.name.split("-")[1])


def remove_checkpoints(folder: Path) -> None:
    """Removes every checkpoint, also one that a kill left half written."""
    for leftover in [*folder.glob("checkpoint-*"), *folder.glob(".checkpoint-*.tmp")]:
        remove(leftover)
