"""The shipped STRIPS Transformers: domains learned from traces, and proved equal to the hidden ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hf_mech.models.strips import StripsTransformer, strips_tokenizer
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.figures import domains_figure
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import reachable_states

from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .fit import trace_accuracy
from .run import CellOutcome, load_traces
from .settings import DATASET, Cell

PROVED, ACCURACY = "proved_on_instances", "test_trace_accuracy"
_BATCH, _MANY = 8, 1_000


def _learned(domain: str, num_train: int, bar: float = 1.0, metric: str = PROVED, **more: int) -> Recipe:
    options = "".join(f" --{name} {value}" for name, value in more.items())
    return Recipe(
        name=f"strips-{domain}",
        options=f"--preset two_part_code --domain {domain} --sizes {num_train} --seeds 0{options}",
        task=f"verdicts on plans in {domain}; holds the domain as symbols",
        metric=metric,
        bar=bar,
        headline="proved equal to the hidden domain" if metric == PROVED else "{value} % of traces judged right",
        count=10_000,
    )


class StripsCheckpoints(Checkpoints[Cell, CellOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_strips"
    recipes = (
        _learned("simple", 500),
        _learned("blocksworld-2b", 500),
        _learned("blocksworld-3b", 500, data_seed=102),  # of ten seeds, three to five are proved
        _learned("ferry-1c", 500),
        _learned("ferry-2c", 500),
        _learned("gripper-3b", 500, data_seed=100),
        _learned("logistics-2p", 2000, 0.85, ACCURACY),
    )

    def load(self, run: Cell, outcome: CellOutcome, folder: Any) -> tuple[Any, Any]:
        model = StripsTransformer.from_pretrained(folder / "model").member(outcome.best)
        return model, strips_tokenizer(model.config.actions)

    def evaluate(self, run: Cell, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The proof, for all traces that the domain's instances can show, and the accuracy on walks of other seeds.

        The walks of a seed begin in few states, so that of a wrong domain the accuracy depends on the seed: a large
        evaluation has walks of ten.
        """
        seeds = range(seed, seed + (10 if count >= _MANY else 1))
        right, hidden = 0.0, load_bundled(run.domain).domain
        for own in seeds:
            traces = load_traces(replace(run, data_seed=own, num_train=2, num_test=count // len(seeds))).splits
            right += float(trace_accuracy(model.theta, *traces["test"])[0]) / len(seeds)
        found = find_distinguishing_trace(
            model.to_domain(), hidden, initial_states=reachable_states(load_bundled(run.domain))
        )
        return {PROVED: Measured(float(found.equivalent is True), 1), ACCURACY: Measured(right, count)}

    def batch(self, run: Cell, model: Any, processor: Any) -> dict[str, Tensor]:
        count = len(model.config.actions)
        ids = torch.arange(_BATCH * 4).reshape(_BATCH, 4) * 7 % count
        return {"input_ids": ids, "labels": torch.arange(_BATCH * 4).reshape(_BATCH, 4) % 2}

    def show(self, recipe: Recipe, run: Cell, outcome: CellOutcome, model: Any, processor: Any) -> Shown:
        problem = load_bundled(run.domain)
        hidden, learned = problem.domain, model.to_domain(name=f"{run.domain}-learned")
        title = f"Learned from {run.num_train} traces"
        traces = load_traces(replace(run, num_train=2, num_test=100)).splits
        ids, labels = traces["test"]
        names = model.config.actions
        valid = next(row for row in range(len(ids)) if (labels[row] <= 0).all() and (labels[row] == 0).sum() >= 3)
        plan = [names[token] for token, label in zip(ids[valid], labels[valid], strict=True) if label >= 0][:3]
        follow = set(model.next_actions(plan))
        return Shown(
            text={
                "actions": len(hidden.actions),
                "propositions": len(hidden.propositions),
                "plan": " ".join([*plan, next(name for name in names if name not in follow)]),
            },
            dataset=DATASET,
            config=run.domain,
            paper="nunezmolina2025strips",
            pipeline="token-classification",
            tags=["strips", "planning", "world-model"],
            figures={
                "domain.png": (
                    domains_figure(hidden, learned, title_learned=title),
                    f"The hidden domain of {run.domain}, and the one in the weights of this checkpoint",
                )
            },
        )


CHECKPOINTS = StripsCheckpoints()
