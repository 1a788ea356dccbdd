"""Trackers of a training, by accelerate: tensorboard, wandb, trackio and the others that it knows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker

from hf_mech.hub.redaction import redact

from .settings import SettingsError, check_names

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
    from importlib.util import find_spec

    names = list(names)
    check_names(names, TRACKERS, "--report_to")
    if missing := [name for name in names if find_spec(name) is None]:
        raise SettingsError(f"--report_to {' '.join(missing)}: not installed. Do so: pip install {' '.join(missing)}")


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool) else str(value)
