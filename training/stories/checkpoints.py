"""The shipped model of stories: a Belief State Transformer that fills in towards a given end, with its probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from matplotlib.figure import Figure
from torch import Tensor

from hf_mech.lookahead.figures import facts_figure
from hf_mech.lookahead.stories.grammar import Story, stories, story_at
from hf_mech.lookahead.stories.measures import joins
from hf_mech.lookahead.stories.tokens import held_out_snippets, tokenize_stories
from hf_mech.probing.state_probes import PROBES_FILE, StateProbes

from ..engine.recipe import EVALUATION_SEED, Added, Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .probes import TESTED, read_facts, token_of
from .report import DATASET
from .run import RunOutcome, complete, joined_texts
from .settings import Run

JOINED, GRAMMATICAL = "joined", "grammatical"
_BATCH = 20
_PROBED = EVALUATION_SEED + 1
"""Seed of the stories that train and test the probes."""
_BEGINNING, _END = 2, 2  # sentences of the example


class StoriesCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_stories"
    few = 10
    recipes = (
        Recipe(
            name="belief-state-stories",
            options="--preset cpu-long --model bst --seeds 0",
            task="fills in a story between its beginning and a given end",
            metric=JOINED,
            bar=0.75,
            headline="{value} % of infilled stories are whole and agree with their beginning and end",
            count=100,
            dtype="float16",
        ),
    )

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """Stories of the test split whose middles the model writes, read by the grammar."""
        texts = [story.text for story in stories(seed, 0, 2 * count, "test", run.length)]
        rows = tokenize_stories(Dataset.from_dict({"text": texts}), processor, max_tokens=run.max_tokens).rows
        lengths = {"prefix_tokens": run.prefix_tokens, "suffix_tokens": run.suffix_tokens}
        snippets = held_out_snippets(rows, processor.eos_token_id, count=count, **lengths)[:]
        room = run.max_tokens - run.prefix_tokens - run.suffix_tokens
        prefixes, suffixes = snippets["prefix_ids"], snippets["suffix_ids"]
        middles = complete(model, prefixes, suffixes, layout=None, max_new_tokens=room, batch_size=_BATCH)
        found = joins(joined_texts(processor, prefixes, middles, suffixes))
        values = {JOINED: found.joined, GRAMMATICAL: found.grammatical}
        return {name: Measured(value, count) for name, value in values.items()}

    def add(self, run: Run, model: Any, processor: Any, folder: Path) -> Added:
        """The probes, and what they read on the way through a story."""
        probes, shares = read_facts(model, processor, _PROBED, run.length)
        probes.half().save(folder)
        stored = StateProbes.load(folder / PROBES_FILE)
        caption = (
            "What probes read from the state behind each sentence of a story that the model has never seen: dark where "
            "they give the story's own fact all probability. A dot marks the sentence that tells a fact first"
        )
        figure = _facts_read(stored, model, processor, story_at(EVALUATION_SEED, 0, "test", run.length))
        return Added(
            measured={f"read_{name}": Measured(share, TESTED) for name, share in shares.items()},
            figures={"facts.png": (figure, caption)},
        )

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        story = story_at(run.data_seed, 0, length=run.length)
        ids = processor(" ".join(story.sentences[:2]), return_tensors="pt")["input_ids"]
        return {"input_ids": ids, "labels": ids}

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        """A story of the evaluation, without its middle."""
        sentences = story_at(EVALUATION_SEED, 0, "test", run.length).sentences
        return Shown(
            text={
                "prefix": repr(" ".join(sentences[:_BEGINNING])),
                "suffix": repr(" " + " ".join(sentences[-_END:])),
            },
            dataset=DATASET,
            config=run.corpus,
            paper="hu2025belief",
            pipeline="text-generation",
            tags=["stories", "infilling", "goal-conditioned-generation"],
        )


@torch.no_grad()
def _facts_read(probes: StateProbes, model: Any, tokenizer: Any, story: Story) -> Figure:
    beginnings = [" ".join(story.sentences[:number]) for number in range(1, len(story.sentences) + 1)]
    facts, rows = probes.targets, []
    for text in beginnings:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        likely = probes(model.encode(ids).float())[:, 0].softmax(-1)
        rows.append([float(likely[place, token_of(tokenizer, story.facts[name])]) for place, name in enumerate(facts)])
    told = [next((n for n, text in enumerate(beginnings) if story.facts[name] in text), None) for name in facts]
    return facts_figure([f"{name}: {story.facts[name]}" for name in facts], told, story.sentences, np.array(rows).T)


CHECKPOINTS = StoriesCheckpoints()
