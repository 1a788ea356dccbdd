"""The shipped models of star graphs: Belief State Transformers, and the GPT-2 that cannot plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_mech.hub.checkpoint import load_checkpoint
from hf_mech.lookahead.figures import star_figure
from hf_mech.lookahead.star_graphs.asked import ask
from hf_mech.lookahead.star_graphs.layouts import lay_out, star_graph_tokenizer

from ..engine.recipe import EVALUATION_SEED, Checkpoints, Measured, Recipe, Shown
from .batches import held_out
from .experiment import EXPERIMENT
from .figures import figures_of
from .report import DATASET, METRIC
from .run import RunOutcome, right_paths
from .settings import PAPER, Run

_BATCH, _CURVE = 500, "path_accuracy_over_training.png"


def _solver(name: str, options: str, task: str, bar: float, headline: str = "{value} % of paths right") -> Recipe:
    return Recipe(
        name=name,
        options=f"{options} --seeds 0",
        task=task,
        metric=METRIC,
        bar=bar,
        headline=headline,
        count=10_000,
        dtype="float16",
    )


class StarGraphCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_belief_state"
    recipes = (
        _solver("belief-state-g-2-5", "--graph g-2-5 --model bst", "finds the path in a star graph of 2 arms", 0.98),
        _solver(
            "belief-state-g-5-5",
            "--preset cpu-long --graph g-5-5 --model bst",
            "finds the path in a star graph of 5 arms",
            0.98,
        ),
        _solver(
            "gpt2-star-graph",
            "--graph g-2-5 --model forward_only",
            "a contrast: GPT-2, which guesses the arm of a star graph",
            0.45,
            "{value} % of paths right, as by chance",
        ),
    )

    def load(self, run: Run, outcome: RunOutcome, folder: Path) -> tuple[Any, Any]:
        return load_checkpoint(folder / "model"), star_graph_tokenizer(run.final)

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        rows = held_out(replace(run, seed=seed), count)
        return {METRIC: Measured(float(right_paths(run, model, rows, _BATCH).float().mean()), count)}

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        rows = held_out(run, 4).numpy()
        batch = {name: torch.from_numpy(array) for name, array in lay_out(run.final, run.layout, rows).items()}
        return {name: batch[name] for name in ("input_ids", "labels")}

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        """A graph of the evaluation, with the path that the model goes in it."""
        graph = run.final
        row = held_out(replace(run, seed=EVALUATION_SEED), 1)[0].tolist()
        prompt, path = row[: graph.prompt_length], row[graph.prompt_length : -1]
        question = ask(processor.decode(prompt), "", run.num_nodes)
        ids = torch.tensor([prompt])
        said = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=graph.length, do_sample=False)
        gone = said[0, graph.prompt_length :].tolist()
        return Shown(
            text={
                "graph": graph,
                "prompt": processor.decode(prompt),
                "path": processor.decode(path),
                "is_bst": run.model == "bst",
                "steps": outcome.steps,
            },
            dataset=DATASET,
            config=run.graph,
            paper="hu2025belief",
            pipeline="text-generation",
            tags=["star-graph", "planning", "path-finding"],
            papers={METRIC: PAPER.figure(METRIC, graph=run.graph, model=run.model)},
            figures={
                "path.png": (
                    star_figure(question.arms, question.goal, gone),
                    "A graph that it has never seen: the goal has a ring, blue is the path that the model says, and a "
                    "step that is no edge is dashed",
                ),
                _CURVE: figures_of([outcome])[_CURVE],
            },
        )


CHECKPOINTS = StarGraphCheckpoints()
