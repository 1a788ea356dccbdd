"""One run: one model trained on one templatic task from one seed, and its exact match on every split."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from run_folder import claim, last_checkpoint, remove_checkpoints, save_checkpoint, this_process
from templatic_data import Layout, TrainingBatches, load_splits, training_tokenizer
from templatic_models import answers, make_model, save_model
from templatic_presets import BY_MODEL, PRESETS
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

from hf_mech.hub.files import write_text_atomically

_LOSSES = 100
"""How many points the curve of the training loss has."""


@dataclass(frozen=True)
class Run:
    """What to train, and how; the numbers are a preset's or what was asked for instead. Make it with [`Run.of`].

    Args:
        task: a configuration of `hf_mech/templatic_generation`.
        model: one of `templatic_presets.MODELS`.
        seed: of the weights, of the dropout, and of the order of the training prompts.
        preset: the preset's name; the numbers that follow are explained there.
        eval_seed: of the choice of the prompts that are measured, the same for every model.
        mixed_precision: "no" or "bf16".
        max_minutes: training ends after this time, if `steps` are not done before; 0: it does not.
        data: what the data set's builder is given besides the task, as JSON.
    """

    task: str
    model: str
    seed: int
    preset: str
    steps: int
    batch_size: int
    layers: int
    hidden: int
    filter: int
    heads: int
    state: int
    kernel: int
    initializer_range: float
    learning_rate: float
    weight_decay: float
    scheduler: str
    warmup_steps: int
    max_grad_norm: float
    dropout: float
    eval_prompts: int
    eval_seed: int = 0
    mixed_precision: str = "no"
    max_minutes: float = 0.0
    data: str = "{}"

    @classmethod
    def of(cls, task: str, model: str, seed: int, preset: str, **instead: Any) -> Run:
        """The preset's run; what is `instead`, unless it is None, takes the place of the preset's."""
        chosen = PRESETS[preset]
        numbers = {name: value for name, value in vars(chosen).items() if name not in BY_MODEL}
        numbers |= chosen.of_model(model) | {name: value for name, value in instead.items() if value is not None}
        return cls(task, model, seed, preset, **numbers)

    @property
    def departures(self) -> dict[str, Any]:
        """What is not the preset's, by name."""
        usual = Run.of(self.task, self.model, self.seed, self.preset)
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)}

    @property
    def name(self) -> str:
        parts = [self.task, self.model, self.preset]
        parts += [f"{name}={value}" for name, value in self.departures.items() if name != "data"]
        return "-".join([*parts, f"seed{self.seed}"])


@dataclass
class Outcome:
    """What came of a run. Written as `outcome.json` beside the model."""

    run: dict[str, Any]
    origin: dict[str, Any]  # command, commit, machine and versions of the run, as results.json has them
    parameters: int
    vocabulary: int
    training_prompts: int  # that the split has
    steps: int  # that were done, at most the run's
    seconds: float  # of training
    seconds_of_test: float
    losses: list[float]  # training loss, the mean of each hundredth of the run's steps
    right: dict[str, int]  # by split: completions that are right in every word, and end there
    measured: dict[str, int]  # by split: prompts that were measured

    @property
    def exact_match(self) -> dict[str, float]:
        """The share of right completions, by split."""
        return {split: self.right[split] / of for split, of in self.measured.items()}

    def save(self, folder: Path) -> None:
        write_text_atomically(folder / "outcome.json", json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Outcome:
        return cls(**json.loads((folder / "outcome.json").read_text()))


@dataclass
class Progress:
    """The state of a run besides weights, optimizer, scheduler and random numbers; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    losses: list[float] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def train_run(
    run: Run,
    folder: Path,
    *,
    position: int = 0,
    origin: dict[str, Any] | None = None,
    checkpoint_steps: int = 1_000,
    data_workers: int = 0,
    eval_batch: int = 100,
    stop_at: int | None = None,
) -> Outcome | None:
    """Trains a run, or goes on where a killed one stopped, or returns what an earlier one found.

    Args:
        run: what to train.
        folder: `run.json`, `outcome.json`, `model/` and, while it trains, `checkpoint-*/` go there.
        position: the progress bar's line.
        origin: what to note as the outcome's origin, if not this process: that of the one whose worker it is.
        checkpoint_steps: how often the state is saved.
        data_workers: processes that make the batches beside the training; 0: none. The batches are the same.
        eval_batch: prompts that are completed at a time.
        stop_at: leave after this many steps as if killed, and return None (for tests of resuming).

    Raises:
        FileExistsError: if the folder holds a run with other settings.
        FloatingPointError: if the loss is no longer a number.
    """
    claim(folder, run)
    if (folder / "outcome.json").exists():
        return Outcome.load(folder)
    disable_progress_bar()  # of saving the model, which takes no time
    splits = load_splits(run.task, json.loads(run.data))
    tokenizer = training_tokenizer(splits["train"])
    layout = Layout(tokenizer, run.model)
    batches = TrainingBatches(splits["train"], layout, run.batch_size, run.seed)
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    set_seed(run.seed)
    model = accelerator.prepare(make_model(run, tokenizer)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay, fused=True)
    scheduler = get_scheduler(run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps)
    progress = Progress()
    accelerator.register_for_checkpointing(optimizer, scheduler, progress)
    if checkpoint := last_checkpoint(folder):
        accelerator.load_state(str(checkpoint))

    bar = tqdm(total=run.steps, initial=progress.step, desc=run.name, position=position, leave=False, disable=None)
    every, began = max(run.steps // _LOSSES, 1), time.perf_counter()
    limit = 60 * run.max_minutes or float("inf")
    loss_sum = torch.tensor(progress.loss_sum, device=accelerator.device)
    for batch in _loader(batches, progress.step, run.steps, data_workers):
        if progress.seconds + time.perf_counter() - began > limit:
            break
        loss = model(**_on(accelerator.device, batch)).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), run.max_grad_norm)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        loss_sum += loss.detach()
        progress.step += 1
        bar.update()
        if progress.step % every == 0:
            progress.losses.append(_finite(float(loss_sum) / every, run, progress.step))
            loss_sum.zero_()
            bar.set_postfix_str(f"loss {progress.losses[-1]:.3g}")
        if progress.step % checkpoint_steps == 0 and progress.step < run.steps:
            progress.seconds += time.perf_counter() - began
            progress.loss_sum, began = float(loss_sum), time.perf_counter()
            save_checkpoint(accelerator, folder, progress.step)
        if progress.step == stop_at:
            bar.close()
            return None
    bar.close()
    progress.seconds += time.perf_counter() - began

    began = time.perf_counter()
    trained = accelerator.unwrap_model(model, keep_fp32_wrapper=False).eval()
    right, measured = {}, {}
    for split, rows in measured_rows(run, splits, batches, progress.step).items():
        with accelerator.autocast():
            right[split] = sum(exact_matches(trained, layout, rows, eval_batch, accelerator.device))
        measured[split] = len(rows)
    outcome = Outcome(
        run=asdict(run),
        origin=origin or this_process(),
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
    save_model(trained, tokenizer, folder / "model")
    outcome.save(folder)
    remove_checkpoints(folder)
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
        said = answers(model, _on(device, layout.prompts(part)), expected.shape[1]).cpu()
        said = torch.nn.functional.pad(
            said, (0, expected.shape[1] - said.shape[1]), value=layout.tokenizer.pad_token_id
        )
        known = (expected != layout.tokenizer.unk_token_id).all(1)
        yield from ((said == expected).all(1) & known).tolist()


def _loader(batches: TrainingBatches, first: int, last: int, workers: int) -> Iterator[dict[str, Any]]:
    """The batches of the steps from `first` on."""
    # A generator of its own: the loader would take a number from torch's, and a resumed run would have other dropout.
    yield from DataLoader(
        batches, batch_size=None, sampler=range(first, last), num_workers=workers, generator=torch.Generator()
    )


def _on(device: torch.device, batch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def _finite(loss: float, run: Run, step: int) -> float:
    if loss - loss != 0:
        raise FloatingPointError(
            f"The loss of {run.name} is {loss} at step {step}; expected a number. Lower --learning_rate or give it "
            "--warmup_steps, and remove the run's folder."
        )
    return loss
