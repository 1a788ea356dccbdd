"""A cell by gradient descent, as in the paper: every seed of the ensemble settles, and is redrawn, by itself."""

from __future__ import annotations

import time

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from hf_mech.models.strips import StripsTransformer
from hf_mech.planning.walk_likelihood import walk_loss

from ..engine import Job
from ..engine.run import last_checkpoint, save_state
from ..engine.settings import parse_seeds
from .fit import Fit, trace_accuracy
from .progress import EnsembleProgress
from .settings import Cell


def fit(
    cell: Cell, job: Job, accelerator: Accelerator, model: StripsTransformer, train: tuple[Tensor, Tensor]
) -> Fit | None:
    """Trains the model, or goes on where a killed run stopped; None if `job.stop_at` ended it.

    Args:
        cell: the settings.
        job: the run.
        accelerator: of this process.
        model: drawn at random, a member for each seed.
        train: `input_ids` and `labels` of the training traces, [traces, longest].
    """
    torch.set_flush_denormal(True)  # a nearly binary theta makes gradients so small that they cost twice the time
    seeds = parse_seeds([cell.seeds])
    model.train()
    loader = DataLoader(TensorDataset(*train), batch_size=cell.batch_size, shuffle=True)
    prepared, loader = accelerator.prepare(model, loader)
    model = accelerator.unwrap_model(prepared)
    # Not prepared: accelerate's wrapper costs as much as the step itself, and does nothing in full precision.
    optimizer = torch.optim.RAdam(model.parameters(), lr=cell.learning_rate, betas=(0.9, cell.beta2))
    progress = EnsembleProgress.of(seeds)
    weight = cell.walk_weight / len(train[0])  # in the sum over all traces, that of all walks against one label
    accelerator.register_for_checkpointing(optimizer, progress)
    if checkpoint := last_checkpoint(job.folder):
        accelerator.load_state(str(checkpoint))

    # A loop of its own: every seed of the ensemble is measured, settles and is redrawn by itself, and epochs, not
    # steps, are what the state is saved after.
    settled, saved, began = False, progress.step, time.perf_counter()
    with job.bar(cell.max_steps, initial=progress.step) as bar:
        while progress.step < cell.max_steps and not settled:
            loader.set_epoch(progress.epoch)
            for input_ids, labels in loader:
                longest = int((labels >= 0).sum(1).max())
                input_ids, labels = input_ids[:, :longest], labels[:, :longest]
                loss = prepared(input_ids, labels=labels).loss
                if cell.walk_weight:
                    loss = loss + weight * walk_loss(model.theta, input_ids, labels).sum()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                progress.step += 1
                bar.update()
                if progress.step % cell.eval_steps == 0:
                    accuracy = trace_accuracy(model.theta, *train, failures=cell.failure_rate > 0)
                    patience = None if cell.redraw_after else cell.patience
                    settled = progress.update(model.theta, accuracy, patience, cell.extra_steps)
                    if cell.redraw_after:
                        progress.redraw(model.theta, optimizer, cell.redraw_after)
                    perfect, last = int((accuracy == 1).sum()), float(accelerator.reduce(loss.detach(), "mean"))
                    bar.set_postfix_str(f"loss {last:.2g}, {perfect}/{len(seeds)} perfect")
                    job.tracker.log({"train/loss": last, "train/perfect_seeds": perfect}, progress.step)
                if settled or progress.step == cell.max_steps:
                    break
            progress.epoch += 1
            if progress.step // job.options.checkpoint_steps > saved // job.options.checkpoint_steps:
                progress.seconds += time.perf_counter() - began
                began, saved = time.perf_counter(), progress.step
                save_state(accelerator, job.folder, progress.step)
            if job.stop_at is not None and progress.step >= job.stop_at:
                return None
    progress.seconds += time.perf_counter() - began
    if cell.redraw_after and progress.best_theta is not None:
        model.theta.data.copy_(progress.best_theta)
    return Fit(
        model=model,
        steps=progress.step,
        seconds=progress.seconds,
        settled_at=progress.settled_at,
        redraws=progress.redraws,
    )
