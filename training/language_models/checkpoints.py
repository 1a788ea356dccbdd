"""The shipped language model of Python sources."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hf_mech.languages.corpora import blocks_of, stdlib_corpus
from hf_mech.languages.figures import layer_stack, stack_attention_figure
from hf_mech.viz.view import token_texts

from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .run import RunOutcome
from .settings import Run

PERPLEXITY = "test_perplexity"
_BATCH = 16
_TEXT = "def f(x):\n    return g(x[0], (1, 2))\n"


class LanguageModelCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_lm"
    recipes = (
        Recipe(
            name="stack-python",
            options="--corpus stdlib --objective clm --use_stack true --seeds 0",
            task="a small language model of Python sources, with a stack in each layer",
            metric=PERPLEXITY,
            bar=131.0,  # the table's mean and a deviation
            lower=True,
            headline="perplexity {value} on unseen files",
            count=256,
            dtype="float16",
        ),
    )

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The perplexity of blocks of the test files, evenly spaced; the files are the same for every seed."""
        blocks = blocks_of(stdlib_corpus().splits["test"], processor)
        rows = torch.tensor(blocks[np.linspace(0, len(blocks) - 1, min(count, len(blocks))).astype(int)])
        with torch.no_grad():
            losses = [float(model(part.long(), labels=part.long()).loss) * len(part) for part in rows.split(_BATCH)]
        return {PERPLEXITY: Measured(math.exp(sum(losses) / len(rows)), len(rows))}

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        ids = processor(_TEXT, return_tensors="pt")["input_ids"]
        return {"input_ids": ids, "labels": ids}

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        ids = processor(_TEXT, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            output = model(ids, output_stack_attentions=True)
        tokens = token_texts(processor, ids[0].tolist())
        read = zip(output.stack_attentions, output.stack_actions, strict=True)
        layers = [layer_stack(tokens, alpha[0], actions[0]) for alpha, actions in read]
        return Shown(
            text={"layers": model.config.n_layer, "outcome": outcome},
            dataset=outcome.data["corpus"],
            config=outcome.data["config"],
            paper="li2024stack",
            pipeline="text-generation",
            tags=["stack-attention", "code"],
            figures={
                "stack_attention.png": (
                    stack_attention_figure(tokens, layers),
                    "Of each layer: the token on top of the stack behind each token (dark: 1), the most probable "
                    "operation, and the stack that these operations build",
                )
            },
        )


CHECKPOINTS = LanguageModelCheckpoints()
