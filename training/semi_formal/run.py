"""One run: a model trained on the labels of short rules, and its accuracy on every split."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import datasets
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device, set_seed
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerFast, get_scheduler

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.rules.formulas import RULE, WORDS, read_formula
from hf_mech.programs.rules.program import POSITIONS

from ..engine import Job, SettingsError
from ..engine.loop import Training
from ..engine.run import TrainedOutcome
from .models import make_model
from .settings import Run

DATASET, CONFIG = "hf_mech/rules", "comments"
_EVAL_BATCH = 50


@dataclass(kw_only=True)
class RunOutcome(TrainedOutcome[Run]):
    """The outcome of a run.

    Attributes:
        parameters: that are trained.
        accuracy: by split.
        exact_accuracy: by split, with DATmax and DATnorm: relaxation_temperature 0. Empty for other models.
    """

    accuracy: dict[str, float]
    exact_accuracy: dict[str, float]

    @property
    def own_figures(self) -> dict[str, float]:
        measured = {"accuracy": self.accuracy, "accuracy at temperature 0": self.exact_accuracy}
        return {name: by_split["test"] for name, by_split in measured.items() if by_split}


class Batches(Dataset[dict[str, Any]]):
    """The batch of each step: the rows in their order, which is random, and from the first again at the end."""

    def __init__(self, rows: datasets.Dataset, tokenizer: PreTrainedTokenizerFast, size: int) -> None:
        self.rows, self.tokenizer, self.size = rows, tokenizer, size

    def __getitem__(self, step: int) -> dict[str, Any]:
        indices = [(step * self.size + i) % len(self.rows) for i in range(self.size)]
        return batch_of(self.rows[indices], self.tokenizer)


def batch_of(rows: dict[str, Any], tokenizer: PreTrainedTokenizerFast) -> dict[str, Tensor]:
    """The arguments of both models' forward."""
    texts = tokenizer(rows["prompt"], padding=True, return_tensors="pt")
    return {**texts, "labels": torch.tensor(rows["label"], dtype=torch.int64)}


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    Raises:
        RunError: the loss is no longer a number.
    """
    words, positions = WORDS, POSITIONS
    if run.own_data:
        splits, words, positions = own_rules(run)
    else:
        rows = {"num_train": run.num_train, "num_eval": run.num_eval, "exceptions": run.exceptions}
        splits = datasets.load_dataset(DATASET, CONFIG, seed=run.data_seed, **rows)
    accelerator = Accelerator()
    set_seed(run.seed)
    untrained, tokenizer = make_model(run, words, positions)
    model = accelerator.prepare(untrained).train()
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=run.learning_rate, weight_decay=run.weight_decay)
    training = Training(
        accelerator=accelerator,
        model=model,
        optimizer=optimizer,
        scheduler=get_scheduler(
            run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps
        ),
        batches=Batches(splits["train"], tokenizer, run.batch_size),
        steps=run.steps,
        max_grad_norm=run.max_grad_norm,
        max_seconds=60 * run.max_minutes or float("inf"),
    )
    if not training.run(job):
        return None
    began = time.perf_counter()
    trained = accelerator.unwrap_model(model).eval()
    found = accuracies(trained, splits, tokenizer)
    exact: dict[str, float] = {}
    if run.model == "semi_formal":
        usual, trained.config.relaxation_temperature = trained.config.relaxation_temperature, 0
        exact = accuracies(trained, splits, tokenizer)
        trained.config.relaxation_temperature = usual
    with job.saving() as folder:
        trained.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in learned),
        steps=training.progress.step,
        seconds=training.progress.seconds,
        seconds_of_test=time.perf_counter() - began,
        losses=training.progress.losses,
        accuracy=found,
        exact_accuracy=exact,
    )


def own_rules(run: Run) -> tuple[datasets.DatasetDict, tuple[str, ...], int]:
    """The user's rows, the training ones in a random order; the words of their training texts; the most of a prompt.

    Raises:
        SettingsError: a prompt that is no text with a rule behind a colon, or a label that is neither 0 nor 1.
    """
    splits, longest = run.own_splits(), POSITIONS
    words: set[str] = set()
    for split, rows in splits.items():
        for number, (prompt, label) in enumerate(zip(rows["prompt"], rows["label"], strict=True)):
            text, colon, rule = prompt.rpartition(f" {RULE} ")
            try:
                read_formula(rule.split() if colon else [])
            except ProgramsError as error:
                raise SettingsError(
                    f"{run.own_data}, split {split}, row {number}: expected words, ' {RULE} ' and a rule: {error}"
                ) from error
            if label not in (0, 1):
                raise SettingsError(f"{run.own_data}, split {split}, row {number}: the label is 0 or 1, got {label}.")
            words |= set(text.split()) if split == "train" else set()
            longest = max(longest, len(prompt.split()))
    splits["train"] = splits["train"].shuffle(seed=run.seed)
    return splits, tuple(sorted(words)), longest


@torch.no_grad()
def accuracies(
    model: PreTrainedModel, splits: datasets.DatasetDict, tokenizer: PreTrainedTokenizerFast
) -> dict[str, float]:
    """The share of right labels on every split but the training one."""
    found = {}
    for split, rows in splits.items():
        if split == "train":
            continue
        right = 0
        for start in range(0, len(rows), _EVAL_BATCH):
            batch = send_to_device(batch_of(rows[start : start + _EVAL_BATCH], tokenizer), model.device)
            labels = batch.pop("labels")
            right += int((model(**batch).logits.argmax(-1) == labels).sum())
        found[split] = right / len(rows)
    return found
