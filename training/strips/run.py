"""One cell of Table 1: an ensemble of seeds trained on one training set of one domain, and what it learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import datasets
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from datasets import load_dataset, load_dataset_builder
from torch import Tensor

import hf_mech  # noqa: F401  (registers the data set's name)
from hf_mech.models.strips import StripsDomain, StripsTransformer, StripsTransformerConfig
from hf_mech.models.strips.strips_lifted import ground_name
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.problem import SearchBoundError
from hf_mech.planning.reduce import reduce_propositions

from ..engine import Job, Outcome, SettingsError
from ..engine.settings import parse_seeds
from . import gradient, lifted, locm, two_part_code
from .fit import Fit, trace_accuracy
from .settings import DATASET, Cell

LEARNERS = {
    "gradient": gradient.fit,
    "two_part_code": two_part_code.fit,
    "locm": locm.fit,
    "lifted": lifted.fit,
}
_ORDER_SEED = 67_280_421_310_721
"""Of the order of the training traces: torch's own default, whatever this process has seeded."""


@dataclass(kw_only=True)
class CellOutcome(Outcome[Cell]):
    """The outcome of a cell; lists hold one entry a seed."""

    steps: int
    train_trace_accuracy: list[float]
    test_trace_accuracy: list[float]
    settled_at: list[int | None]
    redraws: list[int]
    code_bits: list[float] | None = None  # of the two-part code; None: trained by gradient descent
    equivalent: list[bool | None]  # None: the search hit its bound, or no hidden domain is known
    distinguishing_traces: list[list[str] | None]
    propositions_found: list[int | None]  # after removing and merging what is redundant; None: too many states
    propositions_hidden: int | None  # None: your own data
    propositions_needed: int | None  # what the hidden domain itself keeps under the same reduction
    domains: list[dict[str, Any]]

    @property
    def own_figures(self) -> dict[str, float]:
        """Of the seed that is best in training."""
        return {"train": self.train_trace_accuracy[self.best], "test": self.test_trace_accuracy[self.best]}

    @property
    def best(self) -> int:
        """The place of the seed with the best training accuracy, the first if there are several."""
        return self.train_trace_accuracy.index(max(self.train_trace_accuracy))

    def seed(self, place: int) -> int:
        """The seed at a place of the lists."""
        return parse_seeds([self.settings.seeds])[place]


def train_cell(cell: Cell, job: Job) -> CellOutcome | None:
    """Trains a cell, or goes on where a killed run stopped."""
    accelerator = Accelerator(
        mixed_precision="no",
        dataloader_config=DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True, data_seed=_ORDER_SEED),
    )
    with accelerator.main_process_first():
        data = own_traces(cell) if cell.own_data else load_traces(cell)
    traces, hidden, seeds = data.splits, data.hidden, parse_seeds([cell.seeds])
    heads = round(len(hidden.propositions) * cell.head_factor) if hidden else cell.num_propositions
    if heads and cell.learner == "gradient":
        heads = round(heads * cell.search_factor)
    config = StripsTransformerConfig(actions=data.actions, num_propositions=heads, ensemble=len(seeds))
    model = StripsTransformer(config).seed_members(seeds)
    fit = LEARNERS[cell.learner](cell, job, accelerator, model, traces["train"])
    if fit is None:
        return None
    outcome = _outcome(cell, job.origin, fit, hidden, traces)
    if accelerator.is_main_process:
        with job.saving() as folder:
            fit.model.cpu().eval().save_pretrained(folder)
    return outcome


@dataclass(frozen=True)
class Traces:
    """The traces of a cell.

    Attributes:
        splits: padded `input_ids` and `labels`, [traces, longest], of `train` and `test`.
        actions: the names of the actions.
        hidden: the domain that the traces come from; None for the user's.
    """

    splits: dict[str, tuple[Tensor, Tensor]]
    actions: list[str]
    hidden: StripsDomain | None = None


def load_traces(cell: Cell) -> Traces:
    """The traces of the hidden domain."""
    datasets.disable_progress_bars()
    splits = load_dataset(DATASET, cell.domain, **cell.data)
    hidden = load_dataset_builder(DATASET, cell.domain, **cell.data).problem.domain
    padding = len(hidden.actions)
    padded = {name: (pad(rows["input_ids"], padding), pad(rows["labels"], -100)) for name, rows in splits.items()}
    return Traces(padded, list(hidden.action_names), hidden)


def own_traces(cell: Cell) -> Traces:
    """The user's traces: actions as names, or as `{"name": ..., "arguments": [...]}`; 1 labels a failed action.

    Raises:
        SettingsError: a row with another number of labels than actions, or with a label that is neither 0 nor 1.
    """
    splits = cell.own_splits()
    splits["train"] = splits["train"].select(range(min(cell.num_train, len(splits["train"]))))
    named: dict[str, list[list[str]]] = {}
    for split, rows in splits.items():
        named[split] = [[_named(action) for action in trace] for trace in rows["actions"]]
        for number, (trace, labels) in enumerate(zip(named[split], rows["labels"], strict=True)):
            if not trace or len(trace) != len(labels) or set(labels) - {0, 1}:
                raise SettingsError(
                    f"{cell.own_data}, split {split}, row {number}: expected as many labels 0 and 1 as actions, one at "
                    f"least, got {len(trace)} actions and the labels {labels!r:.60}."
                )
    actions = sorted({action for traces in named.values() for trace in traces for action in trace})
    ids = {action: number for number, action in enumerate(actions)}
    padded = {
        split: (pad([[ids[a] for a in trace] for trace in traces], len(ids)), pad(splits[split]["labels"], -100))
        for split, traces in named.items()
    }
    return Traces(padded, actions)


def _named(action: Any) -> str:
    return action if isinstance(action, str) else ground_name(action["name"], tuple(action["arguments"]))


def pad(rows: Any, value: int) -> Tensor:
    """Lists of whole numbers as one tensor, [rows, longest], filled up on the right."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def _outcome(
    cell: Cell, origin: dict[str, Any], fit: Fit, hidden: StripsDomain | None, traces: dict[str, tuple[Tensor, Tensor]]
) -> CellOutcome:
    train_accuracy = trace_accuracy(fit.model.theta, *traces["train"], failures=cell.failure_rate > 0)
    learned = [
        fit.model.to_domain(place, name=f"{cell.domain} learned, seed {seed}")
        for place, seed in enumerate(parse_seeds([cell.seeds]))
    ]
    reduced = [_reduced(domain) for domain in learned]
    verdicts = [
        find_distinguishing_trace(small or domain, hidden) if hidden else None
        for small, domain in zip(reduced, learned, strict=True)
    ]
    return CellOutcome(
        settings=cell,
        origin=origin,
        steps=fit.steps,
        seconds=fit.seconds,
        train_trace_accuracy=train_accuracy.tolist(),
        test_trace_accuracy=trace_accuracy(fit.model.theta, *traces["test"]).tolist(),
        settled_at=fit.settled_at,
        redraws=fit.redraws,
        code_bits=fit.code_bits,
        equivalent=[v.equivalent if v else None for v in verdicts],
        distinguishing_traces=[v.trace if v else None for v in verdicts],
        propositions_found=[None if domain is None else len(domain.propositions) for domain in reduced],
        propositions_hidden=len(hidden.propositions) if hidden else None,
        propositions_needed=len(reduce_propositions(hidden).propositions) if hidden else None,
        domains=[domain.to_dict() for domain in learned],
    )


def _reduced(domain: StripsDomain) -> StripsDomain | None:
    """The domain without redundant propositions, or None if it has too many states to be sure."""
    try:
        return reduce_propositions(domain, max_states=200_000)
    except SearchBoundError:
        return None
