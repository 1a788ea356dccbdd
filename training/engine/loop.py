"""The step loop of a run on accelerate: progress, loss curve, checkpoints, trackers, the check that the loss is finite.

A resumed run is the run that was not interrupted, bit for bit: weights, optimizer, scheduler, random numbers and the
progress are restored, and the batches are a function of the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import nn
from torch.utils.data import DataLoader, Dataset

from .run import Job, RunError, last_checkpoint, save_state

POINTS = 100
"""Points of a loss curve: each is the mean of a hundredth of the steps."""


@dataclass
class Progress:
    """The state of a run besides weights, optimizer, scheduler and random numbers; saved with every checkpoint.

    Attributes:
        step: steps done.
        seconds: spent on them.
        loss_sum: of the losses since the curve's last point.
        losses: the curve.
    """

    step: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    losses: list[float] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


@dataclass
class Training:
    """A model, and all that trains it.

    Args:
        accelerator: prepared the model; the model's forward returns an output with `loss`.
        batches: the batch of each step; a batch is a dictionary of arguments of the forward.
        steps: how many.
        max_grad_norm: gradients are clipped to this norm.
        max_seconds: training ends after this time, also that before an interruption.
        ended: called after every step; True ends the training.
    """

    accelerator: Accelerator
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    batches: Dataset[dict[str, Any]]
    steps: int
    max_grad_norm: float
    max_seconds: float = float("inf")
    progress: Progress = field(default_factory=Progress)
    ended: Callable[[], bool] = lambda: False

    def run(self, job: Job) -> bool:
        """Trains to the end, from the last checkpoint if there is one; False if it stopped at `job.stop_at`.

        Raises:
            RunError: the loss is no longer a number.
        """
        accelerator, progress = self.accelerator, self.progress
        accelerator.register_for_checkpointing(self.optimizer, self.scheduler, progress)
        if checkpoint := last_checkpoint(job.folder):
            accelerator.load_state(str(checkpoint))
        every, began = max(self.steps // POINTS, 1), time.perf_counter()
        loss_sum = torch.tensor(progress.loss_sum, device=accelerator.device)
        with job.bar(self.steps, initial=progress.step) as bar:
            for batch in batches_from(self.batches, progress.step, self.steps, job.options.data_workers):
                if progress.seconds + time.perf_counter() - began > self.max_seconds:
                    break
                loss = self.model(**send_to_device(batch, accelerator.device, non_blocking=True)).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
                loss_sum += loss.detach()
                progress.step += 1
                bar.update()
                if progress.step % every == 0:
                    progress.losses.append(_finite(float(loss_sum) / every, job, progress.step))
                    loss_sum.zero_()
                    bar.set_postfix_str(f"loss {progress.losses[-1]:.3g}")
                    job.tracker.log({"train/loss": progress.losses[-1]}, progress.step)
                if self.ended():
                    break
                if progress.step % job.options.checkpoint_steps == 0 and progress.step < self.steps:
                    progress.seconds += time.perf_counter() - began
                    progress.loss_sum, began = float(loss_sum), time.perf_counter()
                    save_state(accelerator, job.folder, progress.step)
                if progress.step == job.stop_at:
                    return False
        progress.seconds += time.perf_counter() - began
        return True


def batches_from(batches: Dataset[dict[str, Any]], first: int, last: int, workers: int = 0) -> Iterator[dict[str, Any]]:
    """The batches of the steps `first` to `last - 1`, made beside the training by so many processes; 0: in this one."""
    # A generator of its own: the loader would take a number from torch's, and a resumed run would have other dropout.
    yield from DataLoader(
        batches, batch_size=None, sampler=range(first, last), num_workers=workers, generator=torch.Generator()
    )


def _finite(loss: float, job: Job, step: int) -> float:
    if loss - loss != 0:
        raise RunError(
            f"The loss of {job.folder.name} is {loss} at step {step}; expected a number. Lower --learning_rate, or let "
            "it warm up. A run with other settings has a folder of its own."
        )
    return loss
