"""One run: one model trained on one formal language from one seed, and its accuracy at every length."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

from hf_mech.data.random_numbers import Dice
from hf_mech.languages import BRACKETED, TASKS, formal_language_tokenizer, test_batch
from hf_mech.languages.rows import Layout

from ..engine import Job, SettingsError
from ..engine.loop import Progress, Training
from ..engine.run import TrainedOutcome
from .models import POSITIONS, FreshBatches, Growth, Taught, make_model, make_optimizer, save_model, without_empty_mask
from .own import OwnBatches, Texts, batch_of, read_texts
from .settings import TEST_LENGTHS, Run

_TEST_BATCH = 64


@dataclass(kw_only=True)
class RunOutcome(TrainedOutcome[Run]):
    """The outcome of a run."""

    restarts: int  # how often the weights were drawn anew; the losses are those of all attempts, one after another
    accuracy_by_length: dict[str, float]  # per scored token, at every length up to 100 that the task has, and longer
    accuracy_by_nesting: dict[str, tuple[float, int]] = field(default_factory=dict)  # with the number of texts
    held_out: dict[str, float] = field(default_factory=dict)  # accuracies on your own test texts

    @property
    def own_figures(self) -> dict[str, float]:
        return self.held_out

    @property
    def accuracy(self) -> float:
        """The score: the mean of the accuracies at the lengths 41 to 100."""
        return self._mean_accuracy(*TEST_LENGTHS)

    @property
    def trained_length_accuracy(self) -> float:
        """The mean of the accuracies at the lengths that were trained; a choice between runs may see this alone."""
        return self._mean_accuracy(1, self.settings.max_train_length)

    def _mean_accuracy(self, low: int, high: int) -> float:
        return fmean(value for length, value in self.accuracy_by_length.items() if low <= int(length) <= high)


@dataclass
class Attempts(Progress):
    """The progress of a run that may begin anew.

    Attributes:
        last_step: the step at which the run ends, if before its time.
        attempt: how often the weights were drawn anew.
        attempt_began: the step at which they were last.
        losses: of all attempts, one after another.
        growth: of the training texts.
    """

    last_step: int | None = None
    attempt: int = 0
    attempt_began: int = 0
    losses: list[float] = field(default_factory=list)
    growth: Growth = field(default_factory=lambda: Growth(0))

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"growth": asdict(self.growth)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.growth.become(Growth(**state["growth"]))
        super().load_state_dict({name: value for name, value in state.items() if name != "growth"})


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    Raises:
        RunError: the loss is no longer a number.
        SettingsError: texts that grow with what has been learned cannot be made ahead.
    """
    if run.first_train_length and job.options.data_workers:
        raise SettingsError(
            "The next text depends on what has been learned: --first_train_length needs --data_workers 0, got "
            f"{job.options.data_workers}."
        )
    torch.set_flush_denormal(True)  # weights of a nearly hard stack decay into numbers that are slow to compute with
    disable_progress_bar()  # of saving the model, which takes no time
    accelerator = Accelerator(mixed_precision="no")
    set_seed(run.seed)
    texts = read_texts(run) if run.own_data else None
    most = texts.longest if texts else run.max_train_length
    sizes = {"symbols": len(texts.tokenizer), "positions": max(POSITIONS, texts.width)} if texts else {}
    progress = Attempts(growth=Growth.of(run, most))
    untaught = make_model(run, **sizes)
    ids = texts.tokenizer.get_vocab() if texts else None
    taught = Taught(untaught, run, progress.growth, ids, most) if run.is_taught else untaught
    model = accelerator.prepare(taught).train()
    optimizer = make_optimizer(model, run)
    scheduler = get_scheduler(run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps)
    untrained = deepcopy((optimizer.state_dict(), scheduler.state_dict()))

    def ended() -> bool:
        if progress.last_step is None and progress.losses and progress.losses[-1] < run.learned_loss:
            progress.last_step = progress.step + run.steps_after
        if progress.step == progress.last_step:
            return True
        attempted = progress.step - progress.attempt_began
        if progress.last_step is None and attempted == run.restart_after and progress.step < run.steps:
            untaught.load_state_dict(make_model(run, **sizes).state_dict())
            progress.growth.become(Growth.of(run, most))
            optimizer.load_state_dict(deepcopy(untrained[0]))
            scheduler.load_state_dict(deepcopy(untrained[1]))
            progress.attempt, progress.attempt_began = progress.attempt + 1, progress.step
        return False

    training = Training(
        accelerator=accelerator,
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        batches=OwnBatches(run, texts, progress.growth) if texts else FreshBatches(run, progress.growth),
        steps=run.steps,
        max_grad_norm=run.max_grad_norm,
        progress=progress,
        ended=ended,
    )
    if not training.run(job):
        return None
    began = time.perf_counter()
    if texts:
        by_length, held_out = own_accuracy(untaught, run.layout, texts)
    else:
        by_length, held_out = {str(length): accuracy_at(untaught, run, length) for length in run.test_lengths}, {}
    outcome = RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=progress.step,
        restarts=progress.attempt,
        seconds=progress.seconds,
        losses=progress.losses,
        accuracy_by_nesting=accuracy_by_nesting(untaught, run) if run.task in BRACKETED else {},
        accuracy_by_length=by_length,
        held_out=held_out,
        seconds_of_test=time.perf_counter() - began,
    )
    with job.saving() as folder:
        save_model(untaught.cpu(), run, folder, texts and texts.tokenizer)
    return outcome


def accuracy_at(model: nn.Module, run: Run, length: int) -> float:
    """The share of scored tokens that the model says, on `run.test_samples` texts of one length.

    An `alm` sees the true symbols before the one that it is asked for (the paper's footnote 4). Dropout is off.
    """
    right, scored, _ = rightness(model, run, length)
    return int(right.sum()) / int(scored.sum())


def own_accuracy(model: nn.Module, layout: Layout, texts: Texts) -> tuple[dict[str, float], dict[str, float]]:
    """The same on the user's test texts: at every length, and of all, and of those longer than any training text."""
    found: dict[int, tuple[int, int]] = {}
    for length, pairs in texts.test_by_length().items():
        right, scored = answers_to(model, layout, batch_of(pairs, layout))
        found[length] = int(right.sum()), int(scored.sum())
    longer = {length: counts for length, counts in found.items() if length > texts.longest}
    figures = {"accuracy": share_of(found.values())}
    if longer:
        figures["accuracy on longer texts"] = share_of(longer.values())
    return {str(length): share_of([counts]) for length, counts in found.items()}, figures


def share_of(counts: Iterable[tuple[int, int]]) -> float:
    """The right ones among all, of counts of both."""
    right, scored = map(sum, zip(*counts, strict=True))
    return right / scored


def accuracy_by_nesting(model: nn.Module, run: Run) -> dict[str, tuple[float, int]]:
    """The same over the texts of the score, by their nesting, with the number of texts."""
    seen: dict[int, list[bool]] = {}
    tokenizer = formal_language_tokenizer(run.task)
    for length in TASKS[run.task].lengths(*TEST_LENGTHS):
        right, _, texts = rightness(model, run, length)
        for ids, answered in zip(texts[:, 1 : 1 + length].tolist(), right.any(1).tolist(), strict=True):
            seen.setdefault(nesting(tokenizer.convert_ids_to_tokens(ids)), []).append(answered)
    return {str(depth): (fmean(answers), len(answers)) for depth, answers in sorted(seen.items())}


def rightness(model: nn.Module, run: Run, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of the test texts of one length: where the model is right, where its answer counts, and their tokens."""
    whole = test_batch(run.task, run.layout, seed=run.test_seed, length=length, count=run.test_samples)
    return *answers_to(model, run.layout, whole), whole["input_ids"]


@torch.no_grad()
def answers_to(model: nn.Module, layout: Layout, whole: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Where the model is right, and where its answer counts, of texts with `labels`."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    rights, counts = [], []
    for start in range(0, len(whole["labels"]), _TEST_BATCH):
        batch = {name: tensor[start : start + _TEST_BATCH].to(device) for name, tensor in whole.items()}
        labels = batch.pop("labels")
        said = model(**without_empty_mask(batch)).logits.argmax(-1)
        if layout == "alm":
            said, labels = said[:, :-1], labels[:, 1:]
        rights.append(((said == labels) & (labels >= 0)).cpu())
        counts.append((labels >= 0).cpu())
    model.train(was_training)
    return torch.cat(rights), torch.cat(counts)


# -------------------------------------------------------------------------------------------------------------- nesting
#
# How deep the bracketed expressions are nested, and how far evaluating a few levels of them can take a model. The stack
# of a layer holds the layer's inputs, not its outputs. So one would expect a layer to evaluate one level of brackets;
# that trained models are bounded by it is not shown here.


_SAMPLES = 200
_SEED = 0


def nesting(symbols: Sequence[str]) -> int:
    """The most operations that an operand of the expression passes through: 0 for `3` or `(-3)`, 2 for `((1+2)*3)`."""
    open_brackets: list[list[int]] = [[]]
    for symbol in symbols:
        if symbol == "(":
            open_brackets.append([])
        elif symbol == ")":
            operands = open_brackets.pop()
            open_brackets[-1].append(max(operands) + (len(operands) > 1))
        elif symbol == "x" or symbol.isdigit():
            open_brackets[-1].append(0)
        elif symbol == "=":
            break
    return open_brackets[0][0]


def accuracy_of_levels(task: str, levels: int) -> float:
    """What one scores on the test lengths who answers right up to so many levels, and else the most frequent answer.

    Measured on 200 examples of each length.
    """
    depths, answers = _examples(task)
    deep = depths > levels
    guess = np.bincount(answers).argmax()
    return float(np.where(deep, answers == guess, True).mean())


@cache
def _examples(task: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nesting and the answer of examples of all test lengths, as many of each."""
    known, depths, answers = TASKS[task], [], []
    for length in known.lengths(*TEST_LENGTHS):
        examples = known.sample(Dice(_SEED, (length,)), length, _SAMPLES)
        depths += [nesting(text) for text in np.array(known.inputs)[examples.inputs].tolist()]
        answers += examples.outputs[:, 0].tolist()
    return np.array(depths), np.array(answers)
