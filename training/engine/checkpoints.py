"""The state that an interrupted run goes on from: `checkpoint-<step>/`, whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

from accelerate import Accelerator

_ASIDE = "saving"


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
