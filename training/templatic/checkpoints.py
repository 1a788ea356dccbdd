"""The shipped baseline of templatic generation: a GPT-2, to be compared with the compiled program."""

from __future__ import annotations

from typing import Any

import datasets
import torch
from torch import Tensor

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.programs.templatic.batches import Layout
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.loop import POINTS
from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .run import DATASET, RunOutcome, exact_matches
from .settings import PAPER, Run

EXACT, LONGER = "exact_match", "exact_match_of_length_7"
_BATCH = 100


class TemplaticCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_templatic"
    recipes = (
        Recipe(
            name="gpt2-templatic",
            options="--model nano_gpt --seeds 0",
            task="a contrast to dat-pargen: GPT-2 that learned to complete templates",
            metric=EXACT,
            bar=0.1,
            headline="{value} % of unseen prompts exact; longer ones: none",
            count=1_000,
            dtype="float16",
        ),
    )

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The share of exact completions: prompts as in training, and with longer constituents."""
        splits = datasets.load_dataset(
            DATASET, run.task, **(run.data | {"seed": seed, "num_train": 1, "num_eval": count})
        )
        layout = Layout(processor, "decoder")
        found = {}
        for metric, split in ((EXACT, "test"), (LONGER, "ood_cons_len_7")):
            right = sum(exact_matches(model, layout, splits[split], _BATCH, torch.device("cpu")))
            found[metric] = Measured(right / len(splits[split]), len(splits[split]))
        return found

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        batch = processor("Q B V D E A D E V B . Q F G H V K L A", "K L V F G H .", return_tensors="pt")
        return {"input_ids": batch["input_ids"], "labels": batch["input_ids"]}

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        splits = datasets.load_dataset(DATASET, run.task, **(run.data | {"num_train": 1, "num_eval": 1}))
        every = max(outcome.steps // POINTS, 1)
        steps = [every * (point + 1) for point in range(len(outcome.losses))]
        return Shown(
            text={"prompt": splits["test"][0]["prompt"], "completion": splits["test"][0]["completion"]},
            dataset=DATASET,
            config=run.task,
            paper="smolensky2024mechanisms",
            pipeline="text-generation",
            tags=["templatic-generation", "baseline"],
            papers={LONGER: PAPER.figure("exact_match", task=run.task, model=run.model, split="ood_cons_len_7")},
            figures={
                "training_loss.png": (losses_figure({"nano_gpt": [(steps, outcome.losses)]}), "Training loss by step")
            },
        )


CHECKPOINTS = TemplaticCheckpoints()
