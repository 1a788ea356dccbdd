"""One run: one model trained on one templatic task from one seed, and its exact match on every split."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import datasets
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device, set_seed
from torch import nn
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.programs.templatic.batches import Layout, TrainingBatches, lengths_of, word_tokenizer, words_of

from ..engine import Job, SettingsError
from ..engine.loop import Training
from ..engine.run import CompletionsOutcome
from .models import POSITIONS, answers, make_model, save_model
from .settings import KINDS, Run

DATASET = "hf_mech/templatic_generation"


@dataclass(kw_only=True)
class RunOutcome(CompletionsOutcome[Run]):
    """The outcome of a run."""

    vocabulary: int
    training_prompts: int  # that the split has


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    Raises:
        RunError: the loss is no longer a number.
    """
    disable_progress_bar()  # of saving the model, which takes no time
    splits = run.own_splits() if run.own_data else datasets.load_dataset(DATASET, run.task, **run.data)
    if (longest := max(int(lengths_of(rows).max(initial=0)) for rows in splits.values())) > POSITIONS:
        raise SettingsError(
            f"A prompt with its completion may have {POSITIONS:,} words, got {longest:,}; leave it out."
        )
    columns = (splits["train"].data.column(name).to_pylist() for name in ("prompt", "completion"))
    tokenizer = word_tokenizer(words_of(text for column in columns for text in column))
    layout = Layout(tokenizer, KINDS[run.model])
    batches = TrainingBatches(splits["train"], layout, run.batch_size, run.seed)
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    set_seed(run.seed)
    model = accelerator.prepare(make_model(run, tokenizer)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay, fused=True)
    training = Training(
        accelerator=accelerator,
        model=model,
        optimizer=optimizer,
        scheduler=get_scheduler(
            run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps
        ),
        batches=batches,
        steps=run.steps,
        max_grad_norm=run.max_grad_norm,
        max_seconds=60 * run.max_minutes or float("inf"),
    )
    if not training.run(job):
        return None
    began, progress = time.perf_counter(), training.progress
    trained = accelerator.unwrap_model(model, keep_fp32_wrapper=False).eval()
    right, measured = {}, {}
    for split, rows in measured_rows(run, splits, batches, progress.step).items():
        with accelerator.autocast():
            right[split] = sum(exact_matches(trained, layout, rows, job.options.eval_batch, accelerator.device))
        measured[split] = len(rows)
    outcome = RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in trained.parameters()),
        vocabulary=len(tokenizer),
        training_prompts=len(splits["train"]),
        steps=progress.step,
        seconds=progress.seconds,
        seconds_of_test=time.perf_counter() - began,
        losses=progress.losses,
        right=right,
        measured=measured,
    )
    with job.saving() as folder:
        save_model(trained, tokenizer, folder)
    return outcome


def measured_rows(
    run: Run, splits: Mapping[str, datasets.Dataset], batches: TrainingBatches, steps: int
) -> dict[str, datasets.Dataset]:
    """The prompts that the run is measured on, by split; of the training split such as it was trained on.

    Args:
        run: how many prompts of a split, and the seed of their choice.
        splits: all of them.
        batches: the training batches.
        steps: how many of them were trained on.
    """
    chosen = {}
    for number, (split, rows) in enumerate(splits.items()):
        known = np.arange(len(rows))
        if split == "train":
            seen = [batches.indices(step) for step in range(min(steps, len(rows) // run.batch_size))]
            known = np.unique(np.concatenate(seen)) if seen else known[:0]
        if run.eval_prompts and run.eval_prompts < len(known):
            known = np.random.default_rng((run.eval_seed, number)).choice(known, run.eval_prompts, replace=False)
        chosen[split] = rows.select(np.sort(known))
    return chosen


def exact_matches(
    model: nn.Module, layout: Layout, rows: datasets.Dataset, batch_size: int, device: torch.device
) -> Iterator[bool]:
    """Whether the model's greedy completion of each prompt is right in every word, and ends where it should.

    A word that the model does not know is `<unk>` in the right answer too, but to say `<unk>` counts as wrong.
    """
    # Prompts of about one length go together; the order of the answers says nothing.
    order = np.argsort([len(prompt) for prompt in rows["prompt"]], kind="stable")
    for start in range(0, len(order), batch_size):
        part = rows[order[start : start + batch_size]]
        expected = layout.answers(part)
        said = answers(model, send_to_device(layout.prompts(part), device), expected.shape[1]).cpu()
        said = torch.nn.functional.pad(
            said, (0, expected.shape[1] - said.shape[1]), value=layout.tokenizer.pad_token_id
        )
        known = (expected != layout.tokenizer.unk_token_id).all(1)
        yield from ((said == expected).all(1) & known).tolist()
