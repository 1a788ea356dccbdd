"""The shipped story model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datasets import load_dataset
from torch import Tensor

from hf_mech.lookahead.stories.measures import joins
from hf_mech.lookahead.stories.tokens import held_out_snippets, tokenize_stories
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.loop import POINTS
from ..engine.recipe import EVALUATION_SEED, Checkpoints, Measured, Recipe, Shown
from .data import batch_of
from .experiment import EXPERIMENT
from .report import DATASET
from .run import RunOutcome, complete
from .settings import Run

GRAMMATICAL, CONTRADICTIONS = "grammatical", "contradictions"
_BATCH = 20


class StoriesCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_stories"
    recipes = ()

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The measures of greedy completions between the beginning and the end of stories of another seed."""
        rows = self._snippets(run, processor, seed, count)
        middles = complete(
            model,
            rows["prefix_ids"][:],
            rows["suffix_ids"][:],
            layout=None,
            max_new_tokens=run.max_tokens - run.prefix_tokens - run.suffix_tokens,
            batch_size=_BATCH,
        )
        whole = zip(rows["prefix_ids"], middles, rows["suffix_ids"], strict=True)
        found = joins([processor.decode([*a, *b, *c]) for a, b, c in whole])
        return {
            "joined": Measured(found.joined, count),
            GRAMMATICAL: Measured(found.grammatical, count),
            CONTRADICTIONS: Measured(found.contradictions, count),
        }

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        texts = [
            "Once upon a time, there was a little dog named Max.",
            "One sunny day, Anna took the kite to the park.",
        ]
        return batch_of(processor(texts)["input_ids"], [0, 1], processor.pad_token_id, None)

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        row = self._snippets(run, processor, EVALUATION_SEED, 1)[0]
        every = max(run.steps // POINTS, 1)
        steps = [every * (point + 1) for point in range(len(outcome.losses))]
        return Shown(
            text={
                "prefix": processor.decode(row["prefix_ids"]),
                "middle": processor.decode(row["middle_ids"]),
                "suffix": processor.decode(row["suffix_ids"]),
            },
            dataset=DATASET,
            config=run.corpus,
            paper="hu2025belief",
            pipeline="text-generation",
            tags=["stories", "infilling", "goal-conditioned-generation"],
            figures={"training_loss.png": (losses_figure({"bst": [(steps, outcome.losses)]}), "Training loss by step")},
        )

    def _snippets(self, run: Run, tokenizer: Any, seed: int, count: int) -> Any:
        own = replace(run, data_seed=seed, num_test=max(4 * count, 20))
        stories = load_dataset(DATASET, run.corpus, seed=seed, num_train=1, num_test=own.num_test)["test"]
        rows = tokenize_stories(stories, tokenizer, max_tokens=run.max_tokens).rows
        lengths = {"prefix_tokens": run.prefix_tokens, "suffix_tokens": run.suffix_tokens}
        return held_out_snippets(rows, tokenizer.eos_token_id, count=count, **lengths)


CHECKPOINTS = StoriesCheckpoints()
