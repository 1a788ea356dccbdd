"""One run: one model trained from one seed on the episodes of one scenario, and the held-out episodes that it plays."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device, set_seed
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

from hf_mech.control.play import play
from hf_mech.control.windows import IGNORED, DecodedWindows, WindowCollator
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from ..engine import Job
from ..engine.loop import Progress, Training
from ..engine.run import TrainedOutcome
from .data import WindowBatches, load_data
from .models import make_model, make_optimizer
from .settings import Run

CURVE = 1_000_000
"""Episodes that are played while a model trains have numbers from here on."""


@dataclass(kw_only=True)
class RunOutcome(TrainedOutcome[Run]):
    """The outcome of a run. Returns are in the environment's units."""

    data_steps: int  # of all training episodes
    data_returns: list[float]  # of each training episode
    data_success: float | None  # share of the training episodes; None: your own, of which it is not known
    seconds_of_data: float  # to generate and decode it; little if another run had done so
    curve: list[dict[str, Any]]  # step, and the means of `curve_episodes` played then, by argmax
    argmax: list[dict[str, Any]]  # a `Score` for each of `eval_episodes`
    sampled: list[dict[str, Any]]
    held_out: dict[str, float] = field(default_factory=dict)  # of the actions in your own test episodes

    @property
    def own_figures(self) -> dict[str, float]:
        played = {f"played {name}": value for name, value in means(self.argmax).items()} if self.argmax else {}
        return self.held_out | played


@dataclass
class Learning(Progress):
    """The progress of a run, with the episodes played so far."""

    curve: list[dict[str, Any]] = field(default_factory=list)
    seconds_of_play: float = 0.0


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    The engine's step loop and not the Trainer: its resuming is exact within an epoch. `tests/training/msat` trains the
    model with the Trainer, too.

    Raises:
        RunError: the loss is no longer a number.
    """
    disable_progress_bar()  # of saving the model, which takes no time
    began = time.perf_counter()
    data = load_data(run, job.options.data_workers)
    seconds_of_data = time.perf_counter() - began
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    set_seed(run.seed)
    prepared = accelerator.prepare(make_model(run, data.own)).train()
    model: MSATDecisionTransformer = accelerator.unwrap_model(prepared)
    batches = WindowBatches(data.windows, run.batch_size, run.seed)
    steps = run.steps or max(round(run.epochs * batches.epoch), 1)
    optimizer = make_optimizer(run, prepared)
    progress = Learning()
    is_played = not run.own_data or bool(run.environment)
    moments = played_at(run, steps, batches.epoch) if is_played else set()

    def played() -> bool:
        """Plays some episodes when it is time; ends no training."""
        if progress.step in moments:
            began = time.perf_counter()
            point = means(scores_of(run, model, job, range(CURVE, CURVE + run.curve_episodes)))
            progress.curve.append({"step": progress.step, **point})
            job.tracker.log({f"eval/{name}": value for name, value in point.items()}, progress.step)
            progress.seconds_of_play += time.perf_counter() - began
        return False

    training = Training(
        accelerator=accelerator,
        model=prepared,
        optimizer=optimizer,
        scheduler=get_scheduler(run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=steps),
        batches=batches,
        steps=steps,
        max_grad_norm=run.max_grad_norm or float("inf"),
        max_seconds=60 * run.max_minutes or float("inf"),
        progress=progress,
        ended=played,
    )
    if not training.run(job):
        return None
    began = time.perf_counter()
    trained = accelerator.unwrap_model(prepared, keep_fp32_wrapper=False).eval()
    episodes = range(run.eval_episodes if is_played else 0)
    outcome = RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=trained.num_parameters(),
        steps=progress.step,
        data_steps=data.rows,
        data_returns=data.returns,
        data_success=sum(data.success) / len(data.success) if data.success else None,
        losses=progress.losses,
        curve=progress.curve,
        argmax=scores_of(run, trained, job, episodes),
        sampled=scores_of(run, trained, job, episodes, do_sample=True),
        held_out=held_out_figures(trained, data.own.held_out, run.batch_size) if data.own else {},
        seconds=progress.seconds - progress.seconds_of_play,
        seconds_of_data=seconds_of_data,
        seconds_of_test=progress.seconds_of_play + time.perf_counter() - began,
    )
    with job.saving() as folder:
        trained.save_pretrained(folder)
    return outcome


@torch.no_grad()
def held_out_figures(model: MSATDecisionTransformer, windows: DecodedWindows, batch_size: int) -> dict[str, float]:
    """The mean loss of a component of an action, and the share of actions that are right in every component.

    Args:
        model: in evaluation mode.
        windows: each step stands in about one of those that are read.
        batch_size: windows at a time.
    """
    collate, loss, right, components, actions = WindowCollator(windows.context_length), 0.0, 0, 0, 0
    numbers = range(0, len(windows), windows.context_length)
    for first in range(0, len(numbers), batch_size):
        batch = send_to_device(
            collate([windows[number] for number in numbers[first : first + batch_size]]), model.device
        )
        output, labels = model(**batch), batch["labels"]
        known = int((labels != IGNORED).sum())
        loss, components = loss + float(output.loss) * known, components + known
        there = batch["attention_mask"] == 1
        right, actions = (
            right + int((output.logits.argmax(-1) == labels)[there].all(-1).sum()),
            actions + int(there.sum()),
        )
    return {"held_out_loss": loss / components, "action_accuracy": right / actions}


def played_at(run: Run, steps: int, epoch: float) -> set[int]:
    """The steps after which episodes are played: each epoch, or every `eval_steps`."""
    every = run.eval_steps or epoch
    return {min(round(every * number), steps) for number in range(1, int((steps + 0.5) / every) + 1)} - {0}


def scores_of(
    run: Run, model: MSATDecisionTransformer, job: Job, episodes: range, *, do_sample: bool = False
) -> list[dict[str, Any]]:
    """The `Score`s, as JSON has them, of held-out episodes of the run's seed, in the weights' own precision."""
    if not episodes:
        return []
    was_training = model.training
    model.eval()
    scores = play(
        model,
        run.place.environment,
        episodes,
        target_return=model.config.target_return,
        seed=run.seed,
        num_envs=job.options.eval_envs,
        do_sample=do_sample,
        progress=job.position == 0,  # else it would draw over the bars of other runs
        **run.environment_options,
    )
    model.train(was_training)
    return [asdict(score) for score in scores]


def means(scores: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean return, share of successes and mean length of scores."""
    names = {"return": "total_return", "success": "success", "length": "length"}
    return {name: sum(score[own] for score in scores) / len(scores) for name, own in names.items()}
