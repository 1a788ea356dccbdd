"""One run: one model trained on one task from one seed, and its accuracy at every length."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from formal_models import make_model, save_model
from formal_presets import BY_TASK, PRESETS
from run_folder import claim, last_checkpoint, remove_checkpoints, save_checkpoint, this_process
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

from hf_mech.formal_languages import TASKS, fresh_batch, test_batch
from hf_mech.hub.files import write_text_atomically

TEST_LENGTHS = (41, 100)
"""The shortest and the longest length of the score (§4.2)."""

_TEST_BATCH = 64
_LOSSES = 100
"""How many points the curve of the training loss has."""


@dataclass(frozen=True)
class Run:
    """What to train, and how; the numbers are a preset's or what was asked for instead. Make it with [`Run.of`].

    Args:
        task: one of `hf_mech.formal_languages.TASKS`.
        layout: "mlm" or "alm" (§2.3, §4.1).
        model: "stack", "vanilla", "rnn" or "stack_rnn".
        encoding: `position_embedding_type` of the transformers.
        seed: of the weights, of the dropout, and of the training examples.
        preset: the preset's name.
        multi_pop: the most pops that the stack takes in a step; 1 is the paper.
        stack_gate: whether the stack has a learned gate.
        num_hidden_layers: of the transformers.
        test_seed: of the test examples.
    """

    task: str
    layout: str
    model: str
    encoding: str
    seed: int
    preset: str
    steps: int
    batch_size: int
    learning_rate: float
    scheduler: str
    restart_after: int
    warmup_steps: int
    max_grad_norm: float
    dropout: float
    attention_dropout: float
    initializer_range: float
    learned_loss: float
    steps_after: int
    max_train_length: int
    test_samples: int
    multi_pop: int = 1
    stack_gate: bool = False
    num_hidden_layers: int = 5
    test_seed: int = 0

    @classmethod
    def of(cls, task: str, layout: str, model: str, encoding: str, seed: int, preset: str, **instead: Any) -> Run:
        """The preset's run; what is `instead`, unless it is None, takes the place of the preset's."""
        chosen = PRESETS[preset]
        numbers = {name: value for name, value in vars(chosen).items() if name not in BY_TASK}
        numbers |= chosen.of_task(task) | {name: value for name, value in instead.items() if value is not None}
        return cls(task, layout, model, encoding, seed, preset, **numbers)

    @property
    def departures(self) -> dict[str, Any]:
        """What is not the preset's, by name."""
        usual = Run.of(self.task, self.layout, self.model, self.encoding, self.seed, self.preset)
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)}

    @property
    def name(self) -> str:
        parts = [self.task, self.layout, self.model, self.encoding, self.preset]
        parts += [f"{name}={value}" for name, value in self.departures.items()]
        return "-".join([*parts, f"seed{self.seed}"])


@dataclass
class Outcome:
    """What came of a run. Written as `outcome.json` beside the model."""

    run: dict[str, Any]
    origin: dict[str, Any]  # command, commit, machine and versions of the run, as results.json has them
    parameters: int
    steps: int  # that were done, at most the run's
    restarts: int  # how often the weights were drawn anew; the losses are those of all attempts, one after another
    seconds: float  # of training
    seconds_of_test: float
    losses: list[float]  # training loss, the mean of each hundredth of the steps
    accuracy_by_length: dict[str, float]  # per scored token, at every length up to 100 that the task has

    @property
    def accuracy(self) -> float:
        """The score: the mean of the accuracies at the lengths 41 to 100."""
        return self._mean_accuracy(*TEST_LENGTHS)

    @property
    def trained_length_accuracy(self) -> float:
        """The mean of the accuracies at the lengths that were trained; this is what a choice between runs may see."""
        return self._mean_accuracy(1, self.run["max_train_length"])

    def _mean_accuracy(self, low: int, high: int) -> float:
        return fmean(value for length, value in self.accuracy_by_length.items() if low <= int(length) <= high)

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
    last_step: int | None = None  # if the run is to end before its time
    attempt: int = 0
    attempt_began: int = 0
    losses: list[float] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class FreshBatches(Dataset[dict[str, Tensor]]):
    """The training batches of a run by step: each a pure function of the seed and the step."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        run = self.run
        return fresh_batch(
            run.task,
            run.layout,
            seed=run.seed,
            step=step,
            batch_size=run.batch_size,
            max_length=run.max_train_length,
        )


def train_run(
    run: Run,
    folder: Path,
    *,
    position: int = 0,
    origin: dict[str, Any] | None = None,
    checkpoint_steps: int = 1_000,
    data_workers: int = 0,
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
        stop_at: leave after this many steps as if killed, and return None (for tests of resuming).

    Raises:
        FileExistsError: if the folder holds a run with other settings.
        FloatingPointError: if the loss is no longer a number.
    """
    claim(folder, run)
    if (folder / "outcome.json").exists():
        return Outcome.load(folder)
    torch.set_flush_denormal(True)  # weights of a nearly hard stack decay into numbers that are slow to compute with
    disable_progress_bar()  # of saving the model, which takes no time
    accelerator = Accelerator(mixed_precision="no")
    set_seed(run.seed)
    model = accelerator.prepare(make_model(run)).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=run.learning_rate, fused=True)
    scheduler = get_scheduler(run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps)
    progress = Progress()
    accelerator.register_for_checkpointing(optimizer, scheduler, progress)
    untrained = deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    if checkpoint := last_checkpoint(folder):
        accelerator.load_state(str(checkpoint))

    bar = tqdm(total=run.steps, initial=progress.step, desc=run.name, position=position, leave=False, disable=None)
    every, began = max(run.steps // _LOSSES, 1), time.perf_counter()
    loss_sum = torch.tensor(progress.loss_sum, device=accelerator.device)
    for batch in _batches(run, progress.step, data_workers):
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
            if progress.last_step is None and progress.losses[-1] < run.learned_loss:
                progress.last_step = progress.step + run.steps_after
        if progress.step == progress.last_step:
            break
        attempted = progress.step - progress.attempt_began
        if progress.last_step is None and attempted == run.restart_after and progress.step < run.steps:
            accelerator.unwrap_model(model).load_state_dict(make_model(run).state_dict())
            optimizer.load_state_dict(deepcopy(untrained[0]))
            scheduler.load_state_dict(deepcopy(untrained[1]))
            progress.attempt, progress.attempt_began = progress.attempt + 1, progress.step
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
    lengths = TASKS[run.task].lengths(1, TEST_LENGTHS[1])
    accuracy = {str(length): accuracy_at(model, run, length) for length in lengths}
    outcome = Outcome(
        run=asdict(run),
        origin=origin or this_process(),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=progress.step,
        restarts=progress.attempt,
        seconds=progress.seconds,
        seconds_of_test=time.perf_counter() - began,
        losses=progress.losses,
        accuracy_by_length=accuracy,
    )
    save_model(accelerator.unwrap_model(model).cpu(), run, folder / "model")
    outcome.save(folder)
    remove_checkpoints(folder)
    return outcome


@torch.no_grad()
def accuracy_at(model: nn.Module, run: Run, length: int) -> float:
    """The share of scored tokens that the model says, on `run.test_samples` texts of one length.

    An `alm` sees the true symbols before the one that it is asked for (the paper's footnote 4). Dropout is off.
    """
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    right = scored = 0
    whole = test_batch(run.task, run.layout, seed=run.test_seed, length=length, count=run.test_samples)
    for start in range(0, run.test_samples, _TEST_BATCH):
        batch = {name: tensor[start : start + _TEST_BATCH] for name, tensor in whole.items()}
        labels = batch.pop("labels").to(device)
        said = model(**_on(device, batch)).logits.argmax(-1)
        if run.layout == "alm":
            said, labels = said[:, :-1], labels[:, 1:]
        right += int(((said == labels) & (labels >= 0)).sum())
        scored += int((labels >= 0).sum())
    model.train(was_training)
    return right / scored


def _batches(run: Run, first: int, workers: int) -> Iterator[dict[str, Tensor]]:
    """The batches from step `first` on."""
    steps = range(first, run.steps)
    # A generator of its own: the loader would take a number from torch's, and a resumed run would have other dropout.
    yield from DataLoader(
        FreshBatches(run), batch_size=None, sampler=steps, num_workers=workers, generator=torch.Generator()
    )


def _on(device: torch.device, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch on the device. A mask that hides nothing is left out: attention without one is faster."""
    return {
        name: tensor.to(device, non_blocking=True)
        for name, tensor in batch.items()
        if name != "attention_mask" or not bool(tensor.all())
    }


def _finite(loss: float, run: Run, step: int) -> float:
    if loss - loss != 0:
        raise FloatingPointError(
            f"The loss of {run.name} is {loss} at step {step}; expected a number. Lower --learning_rate or give it "
            "--warmup_steps, and remove the run's folder."
        )
    return loss
