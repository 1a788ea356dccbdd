"""One run: one model trained on one kind of star graphs from one seed, and its path accuracy."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor
from transformers import PreTrainedModel
from transformers.optimization import get_wsd_schedule
from transformers.utils.logging import disable_progress_bar

from hf_mech.lookahead.star_graphs.layouts import inference_prompts, lay_out, read_paths
from hf_mech.metrics.path_accuracy import paths_right

from ..engine import Job
from ..engine.loop import Progress, Training
from ..engine.run import TrainedOutcome
from .batches import CURVE, StarGraphBatches, held_out
from .models import forward_encoder, make_model, make_optimizer, separate_blocks, with_objective, without_objective
from .own import OwnBatches, OwnRows, own_accuracy, read_rows
from .probes import read_states
from .settings import Run
from .way_back import GRAPHS, way_back


@dataclass(kw_only=True)
class RunOutcome(TrainedOutcome[Run]):
    """The outcome of a run."""

    curve: list[list[float]]  # step and path accuracy on `curve_graphs`
    right: int  # paths of the `eval_graphs`
    generated_alike: int  # of `generated` graphs those on which generate() and the fast measurement agree
    probes: list[dict[str, Any]] = field(default_factory=list)  # by moment: step, and `accuracy` and `bits` by target
    held_out: dict[str, float] = field(default_factory=dict)  # of your own test rows
    way_back: list[float] = field(default_factory=list)  # shares of nodes known, one step back from the goal first

    @property
    def own_figures(self) -> dict[str, float]:
        return self.held_out

    @property
    def path_accuracy(self) -> float:
        """The share of right paths."""
        return self.right / self.settings.eval_graphs


@dataclass
class Learning(Progress):
    """The progress of a run with its accuracy and its probes so far."""

    curve: list[list[float]] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    Raises:
        RunError: the loss is no longer a number.
    """
    disable_progress_bar()  # of saving the model, which takes no time
    own = read_rows(run) if run.own_data else None
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    set_seed(run.seed)
    made = with_objective(run, make_model(run, own.vocabulary if own else None))
    prepared = accelerator.prepare(made).train()
    model = without_objective(accelerator.unwrap_model(prepared))
    optimizer = make_optimizer(run, prepared)
    progress = Learning()

    def measured() -> bool:
        """Adds a point to the curve and reads the states when it is time; ends no training."""
        if progress.step % run.eval_steps == 0:
            share = accuracy(run, accelerator, model, job.options.eval_batch, own)
            progress.curve.append([progress.step, share])
            job.tracker.log({"eval/path_accuracy": share}, progress.step)
        if progress.step in probed_at(run):
            model.eval()
            with accelerator.autocast():
                found, readings = read_states(run, model, job.options.eval_batch)
            found.save(job.folder)
            progress.probes.append({"step": progress.step, **asdict(readings)})
            model.train()
        return False

    training = Training(
        accelerator=accelerator,
        model=prepared,
        optimizer=optimizer,
        scheduler=get_wsd_schedule(
            optimizer,
            num_warmup_steps=run.warmup_steps,
            num_decay_steps=round(run.steps * run.decay),
            num_training_steps=run.steps,
            decay_type="linear",
        ),
        batches=OwnBatches(run, own) if own else StarGraphBatches(run),
        steps=run.steps,
        max_grad_norm=run.max_grad_norm or float("inf"),
        max_seconds=60 * run.max_minutes or float("inf"),
        progress=progress,
        ended=measured,
    )
    if not training.run(job):
        return None
    began = time.perf_counter()
    trained = without_objective(accelerator.unwrap_model(prepared, keep_fp32_wrapper=False)).eval()
    with accelerator.autocast():
        if own:
            right = generated = torch.zeros(0)
            back: list[float] = []
            found = {"exact_match": own_accuracy(trained, own.test, own.layout, run.batch_size)}
        else:
            rows, found = held_out(run, run.eval_graphs), {}
            right = right_paths(run, trained, rows, job.options.eval_batch)
            generated = generated_right(run, trained, rows[: run.generated], job.options.eval_batch)
            # An ablation lacks what says the node before a suffix, or what reads the suffix.
            back = way_back(run, trained, rows[:GRAPHS], job.options.eval_batch) if run.model == "bst" else []
    outcome = RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in prepared.parameters()),
        steps=progress.step,
        seconds=progress.seconds,
        seconds_of_test=time.perf_counter() - began,
        losses=progress.losses,
        curve=progress.curve,
        probes=progress.probes,
        right=int(right.sum()),
        generated_alike=int((right[: len(generated)] == generated).sum()),
        held_out=found,
        way_back=back,
    )
    separate_blocks(forward_encoder(trained).h)
    with job.saving() as folder:
        trained.save_pretrained(folder)
        if own:
            own.layout.tokenizer.save_pretrained(folder)
    return outcome


def probed_at(run: Run) -> set[int]:
    """The steps at which the probes are trained: evenly spaced, the last one among them."""
    return {round(run.steps * (number + 1) / run.probes) for number in range(run.probes)}


def accuracy(
    run: Run, accelerator: Accelerator, model: PreTrainedModel, batch_size: int, own: OwnRows | None = None
) -> float:
    """The path accuracy of a model that goes on training, or the share of right completions of the user's."""
    model.eval()
    with accelerator.autocast(), torch.no_grad():
        if own:
            some = own.test.select(range(min(run.curve_graphs, len(own.test))))
            share = own_accuracy(model, some, own.layout, run.batch_size)
        else:
            rows = held_out(run, run.curve_graphs, CURVE)
            share = right_paths(run, model, rows, batch_size).float().mean().item()
    model.train()
    return share


@torch.no_grad()
def right_paths(run: Run, model: PreTrainedModel, rows: Tensor, batch_size: int) -> Tensor:
    """Whether the path of each graph is right, [count].

    All nodes are predicted in one pass behind the true path before them. The prediction is right everywhere exactly if
    greedy decoding says the whole path: up to its first wrong node both have read the same tokens.

    Args:
        run: of the graphs and their layout.
        model: in evaluation mode.
        rows: [count, row_length], from `StarGraph.draw`.
        batch_size: graphs at a time.
    """
    return torch.cat([_right(run, model, part) for part in rows.split(batch_size)])


@torch.no_grad()
def generated_right(run: Run, model: PreTrainedModel, rows: Tensor, batch_size: int) -> Tensor:
    """The same by `generate`, token by token; `teacherless` answers in one pass of its prompt."""
    return torch.cat([_generated(run, model, part) for part in rows.split(batch_size)])


def _right(run: Run, model: PreTrainedModel, rows: Tensor) -> Tensor:
    graph = run.final
    batch = {name: torch.from_numpy(part) for name, part in lay_out(graph, run.layout, rows.numpy()).items()}
    trained = batch["labels"][0] != -100
    last = int(trained.nonzero()[-1])  # the end token, in the same column of every row
    path = slice(last - graph.length, last)
    logits = model(batch["input_ids"][:, : last - 1].to(model.device), logits_to_keep=graph.length).logits
    right: Tensor = paths_right(logits.argmax(-1).cpu(), batch["labels"][:, path])
    return right


def _generated(run: Run, model: PreTrainedModel, rows: Tensor) -> Tensor:
    graph = run.final
    prompts = torch.from_numpy(inference_prompts(graph, run.layout, rows.numpy())).to(model.device)
    if run.layout == "teacherless":
        answered = model(prompts).logits.argmax(-1)
    else:
        generator: Any = model
        answered = generator.generate(
            prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=graph.length, do_sample=False
        )
    right: Tensor = paths_right(
        read_paths(graph, run.layout, answered.cpu()), torch.from_numpy(graph.paths_of(rows.numpy()))
    )
    return right
