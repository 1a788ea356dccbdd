"""The shipped models of star graphs: Belief State Transformers, and the GPT-2 that cannot plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_mech.hub.checkpoint import load_checkpoint
from hf_mech.lookahead.star_graphs.layouts import lay_out, star_graph_tokenizer

from ..engine.recipe import EVALUATION_SEED, Checkpoints, Measured, Recipe, Shown
from .batches import held_out
from .experiment import EXPERIMENT
from .figures import figures_of
from .run import RunOutcome, right_paths
from .settings import Run

ACCURACY = "path_accuracy"
_BATCH = 500


class StarGraphCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_belief_state"
    recipes = (
        Recipe(
            name="belief-state-g-2-5",
            options="--graph g-2-5 --model bst --seeds 0",
            task="finds the path in a star graph of 2 arms",
            metric=ACCURACY,
            bar=0.98,
            headline="{value} % of paths right",
            count=10_000,
            dtype="float16",
        ),
        Recipe(
            name="belief-state-g-5-5",
            options="--preset cpu-long --graph g-5-5 --model bst --seeds 0",
            task="finds the path in a star graph of 5 arms",
            metric=ACCURACY,
            bar=0.98,
            headline="{value} % of paths right",
            count=10_000,
            dtype="float16",
        ),
        Recipe(
            name="gpt2-star-graph",
            options="--graph g-2-5 --model forward_only --seeds 0",
            task="a contrast: GPT-2, which guesses the arm of a star graph",
            metric=ACCURACY,
            bar=0.45,
            headline="{value} % of paths right, as by chance",
            count=10_000,
            dtype="float16",
        ),
    )

    def load(self, run: Run, outcome: RunOutcome, folder: Path) -> tuple[Any, Any]:
        return load_checkpoint(folder / "model"), star_graph_tokenizer(run.final)

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        rows = held_out(replace(run, seed=seed), count)
        return {ACCURACY: Measured(float(right_paths(run, model, rows, _BATCH).float().mean()), count)}

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        rows = held_out(run, 4).numpy()
        batch = {name: torch.from_numpy(array) for name, array in lay_out(run.final, run.layout, rows).items()}
        return {name: batch[name] for name in ("input_ids", "labels")}

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        graph = run.final
        row = held_out(replace(run, seed=EVALUATION_SEED), 1)[0].tolist()
        figures = figures_of([outcome])
        return Shown(
            text={
                "graph": graph,
                "prompt": processor.decode(row[: graph.prompt_length]),
                "path": processor.decode(row[graph.prompt_length : -1]),
                "is_bst": run.model == "bst",
                "steps": outcome.steps,
            },
            dataset="hf_mech/star_graph",
            config=run.graph,
            paper="hu2025belief",
            pipeline="text-generation",
            tags=["star-graph", "planning", "path-finding"],
            figures={"path_accuracy_over_training.png": figures["path_accuracy_over_training.png"]},
        )


CHECKPOINTS = StarGraphCheckpoints()
