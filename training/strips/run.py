"""One cell of Table 1: an ensemble of seeds trained on one training set of one domain, and what it learned."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from datasets import load_dataset, load_dataset_builder
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import hf_mech  # noqa: F401  (registers the data set's name)
from hf_mech.metrics.strips_trace_accuracy import traces_right
from hf_mech.models.strips import StripsDomain, StripsTransformer, StripsTransformerConfig, strips_attention
from hf_mech.planning.bundled import BUNDLED
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.reduce import SearchBoundError, reduce_propositions

from ..engine import Job, Outcome, Settings, axis, fixed, option
from ..engine.paper import Paper
from ..engine.run import last_checkpoint, save_state
from ..engine.settings import parse_seeds
from .progress import Progress

DATASET = "hf_mech/strips_traces"
PAPER = Paper(Path(__file__).with_name("paper.json"))
ALL_SEEDS = "0..9"
_ORDER_SEED = 67_280_421_310_721
"""Of the order of the training traces: torch's own default, whatever this process has seeded."""


@dataclass(frozen=True, kw_only=True)
class Cell(Settings):
    """A cell: a domain, a number of traces, and how the ensemble is trained."""

    PRESETS = {
        "paper": {"redraw_after": 0, "beta2": 0.999},
        "redraw": {"redraw_after": 5_000, "beta2": 0.99},
    }

    domain: str = axis("configurations of hf_mech/strips_traces", (*BUNDLED, "pddl"), all=PAPER.values("domain"))
    num_train: int = axis(
        "numbers of training traces; all: those of Table 1", all=["all"], default=["all"], called="sizes", least=1
    )
    head_factor: float = axis("heads per true proposition; 1: their number is known, as in the paper", default=[1.0])
    seeds: str = fixed("the seeds, trained at once", default=ALL_SEEDS)
    data_seed: int = option("seed of the traces and their initial states", default=0, least=0)
    max_steps: int = option(
        "steps at most; training stops earlier when every seed has settled", default=100_000, least=1
    )
    eval_steps: int = option("steps between two measurements of the training accuracy", default=1_000, least=1)
    patience: int = option(
        "a seed settles when it is perfect in training and its symbols are those of the last measurement, or (if none "
        "is redrawn) when they have not changed for this many steps",
        default=20_000,
        least=1,
    )
    redraw_after: int = option(
        "a seed whose best training accuracy has not improved for this many steps goes back to its best weights, with "
        "one head drawn anew; 0: never",
        least=0,
    )
    # Rare gradients, an action seen in one batch of a hundred, take steps of lr / sqrt(1 - beta2): with torch's 0.999
    # they undo what was learnt.
    beta2: float = option("RAdam's second coefficient", least=0, most=1)
    learning_rate: float = option("RAdam's learning rate", default=0.02, least=0)
    batch_size: int = option("traces a step", default=8, least=1)
    num_test: int = option("test traces, half of them positive", default=10_000, least=2)
    domain_file: str | None = fixed("the PDDL domain of --domain pddl", default=None)
    problem_file: str | None = fixed("the PDDL problem of --domain pddl", default=None)

    @property
    def labels(self) -> list[str]:
        heads = [] if self.head_factor == 1 else [f"heads-x{self.head_factor:g}"]
        return [self.domain if self.problem_file is None else Path(self.problem_file).stem, str(self.num_train), *heads]

    @property
    def ending(self) -> list[str]:
        return [] if self.seeds == ALL_SEEDS else [f"seeds={self.seeds}"]

    @property
    def data(self) -> dict[str, Any]:
        """The arguments of the data set's builder, besides the configuration's name."""
        files = {"domain_file": self.domain_file, "problem_file": self.problem_file}
        numbers = {"seed": self.data_seed, "num_train": self.num_train, "num_test": self.num_test}
        return numbers | (files if self.domain_file is not None else {})


@dataclass(kw_only=True)
class CellOutcome(Outcome[Cell]):
    """The outcome of a cell; lists hold one entry a seed."""

    steps: int
    train_trace_accuracy: list[float]
    test_trace_accuracy: list[float]
    settled_at: list[int | None]
    redraws: list[int]
    equivalent: list[bool | None]  # None: the search hit its bound
    distinguishing_traces: list[list[str] | None]
    propositions_found: list[int | None]  # after removing and merging what is redundant; None: too many states
    propositions_hidden: int
    propositions_needed: int  # what the hidden domain itself keeps under the same reduction
    domains: list[dict[str, Any]]

    @property
    def best(self) -> int:
        """The place of the seed with the best training accuracy, the first if there are several."""
        return self.train_trace_accuracy.index(max(self.train_trace_accuracy))

    def seed(self, place: int) -> int:
        """The seed at a place of the lists."""
        return parse_seeds([self.settings.seeds])[place]


def train_cell(cell: Cell, job: Job) -> CellOutcome | None:
    """Trains a cell, or goes on where a killed run stopped."""
    torch.set_flush_denormal(True)  # a nearly binary theta makes gradients so small that they cost twice the time
    accelerator = Accelerator(
        mixed_precision="no",
        dataloader_config=DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True, data_seed=_ORDER_SEED),
    )
    with accelerator.main_process_first():
        traces, hidden = load_traces(cell)
    train, test = traces["train"], traces["test"]

    seeds, heads = parse_seeds([cell.seeds]), round(len(hidden.propositions) * cell.head_factor)
    config = StripsTransformerConfig(actions=list(hidden.action_names), num_propositions=heads, ensemble=len(seeds))
    model = StripsTransformer(config).seed_members(seeds).train()
    loader = DataLoader(TensorDataset(*train), batch_size=cell.batch_size, shuffle=True)
    prepared, loader = accelerator.prepare(model, loader)
    model = accelerator.unwrap_model(prepared)
    # Not prepared: accelerate's wrapper costs as much as the step itself, and does nothing in full precision.
    optimizer = torch.optim.RAdam(model.parameters(), lr=cell.learning_rate, betas=(0.9, cell.beta2))
    progress = Progress.of(seeds)
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
                loss = prepared(input_ids[:, :longest], labels=labels[:, :longest]).loss
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                progress.step += 1
                bar.update()
                if progress.step % cell.eval_steps == 0:
                    accuracy = trace_accuracy(model.theta, *train)
                    settled = progress.update(model.theta, accuracy, None if cell.redraw_after else cell.patience)
                    if cell.redraw_after:
                        progress.redraw(model.theta, optimizer, cell.redraw_after)
                    perfect, last = int((accuracy == 1).sum()), float(loss.detach())
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

    outcome = _outcome(cell, job.origin, model, hidden, progress, train, test)
    if accelerator.is_main_process:
        model.cpu().eval().save_pretrained(job.folder / "model")
    return outcome


def load_traces(cell: Cell) -> tuple[dict[str, tuple[Tensor, Tensor]], StripsDomain]:
    """The splits as padded `input_ids` and `labels`, [traces, longest], and the hidden domain."""
    datasets.disable_progress_bars()
    splits = load_dataset(DATASET, cell.domain, **cell.data)
    hidden = load_dataset_builder(DATASET, cell.domain, **cell.data).problem.domain
    padding = len(hidden.actions)
    return {name: (pad(rows["input_ids"], padding), pad(rows["labels"], -100)) for name, rows in splits.items()}, hidden


def pad(rows: Any, value: int) -> Tensor:
    """Lists of whole numbers as one tensor, [rows, longest], filled up on the right."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


@torch.no_grad()
def trace_accuracy(theta: Tensor, input_ids: Tensor, labels: Tensor, batch_size: int = 1_000) -> Tensor:
    """The metric `strips_trace_accuracy` of every member, by the binarized theta (Eq. 19), [members]."""
    symbols = (theta.detach().cpu() >= 0.5).float()
    right = torch.zeros(len(symbols), dtype=torch.float64)
    for ids, target in zip(input_ids.split(batch_size), labels.split(batch_size), strict=True):
        _, scores = strips_attention(symbols, torch.where(target >= 0, ids, -1))
        right += torch.as_tensor(traces_right(scores >= 0.5, target)).sum(0)
    return right / len(input_ids)


def _outcome(
    cell: Cell,
    origin: dict[str, Any],
    model: StripsTransformer,
    hidden: StripsDomain,
    progress: Progress,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
) -> CellOutcome:
    learned = [
        model.to_domain(place, name=f"{cell.domain} learned, seed {seed}") for place, seed in enumerate(progress.seeds)
    ]
    reduced = [_reduced(domain) for domain in learned]
    verdicts = [
        find_distinguishing_trace(small or domain, hidden) for small, domain in zip(reduced, learned, strict=True)
    ]
    return CellOutcome(
        settings=cell,
        origin=origin,
        steps=progress.step,
        seconds=progress.seconds,
        train_trace_accuracy=trace_accuracy(model.theta, *train).tolist(),
        test_trace_accuracy=trace_accuracy(model.theta, *test).tolist(),
        settled_at=progress.settled_at,
        redraws=progress.redraws,
        equivalent=[v.equivalent for v in verdicts],
        distinguishing_traces=[v.trace for v in verdicts],
        propositions_found=[None if domain is None else len(domain.propositions) for domain in reduced],
        propositions_hidden=len(hidden.propositions),
        propositions_needed=len(reduce_propositions(hidden).propositions),
        domains=[domain.to_dict() for domain in learned],
    )


def _reduced(domain: StripsDomain) -> StripsDomain | None:
    """The domain without redundant propositions, or None if it has too many states to be sure."""
    try:
        return reduce_propositions(domain, max_states=200_000)
    except SearchBoundError:
        return None
