"""The stories of a run: tokenizer, training rows, held-out rows and snippets; and the batch of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from datasets import Dataset, load_dataset
from torch import Tensor
from transformers import PreTrainedTokenizerFast

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.lookahead.stories.tokens import (
    IGNORED,
    FillInTheMiddle,
    held_out_snippets,
    load_tinystories,
    tokenize_stories,
    train_story_tokenizer,
)

from .settings import Run


@dataclass(frozen=True)
class StoryData:
    """The data of a run.

    Attributes:
        tokenizer: trained on the first training stories.
        train, test: rows with `input_ids`.
        snippets: prefixes, middles and suffixes of held-out stories.
        dropped: the training stories with too many tokens.
    """

    tokenizer: PreTrainedTokenizerFast
    train: Dataset
    test: Dataset
    snippets: Dataset
    dropped: int


def load_stories(run: Run) -> StoryData:
    """Loads, tokenizes and selects; all of it is cached by `datasets`, but for the tokenizer's training.

    Raises:
        LookaheadError: too few held-out stories for `eval_stories`.
    """
    if run.own_data:
        train, test = run.own_splits().values()
    elif run.corpus == "grammar":
        counts = {"num_train": run.num_train, "num_test": run.num_test}
        splits = load_dataset("hf_mech/stories", "grammar", seed=run.data_seed, length=run.length, **counts)
        train, test = splits["train"], splits["test"]
    else:
        splits = load_tinystories(edition="gpt4" if run.corpus.endswith("gpt4") else "first")
        train, test = splits["train"], splits["validation"]
    tokenizer = train_story_tokenizer(train.select(range(min(run.tokenizer_stories, len(train)))), run.vocabulary)
    rows = tokenize_stories(train, tokenizer, max_tokens=run.max_tokens)
    held_out = tokenize_stories(test, tokenizer, max_tokens=run.max_tokens).rows
    eos = tokenizer.eos_token_id
    lengths = {"prefix_tokens": run.prefix_tokens, "suffix_tokens": run.suffix_tokens}
    snippets = held_out_snippets(held_out, eos, count=run.eval_stories, **lengths)
    return StoryData(tokenizer, rows.rows, held_out, snippets, rows.dropped)


class StoryBatches(torch.utils.data.Dataset[dict[str, Tensor]]):
    """The batch of each step: stories in a new order each epoch; for the baseline with new cuts each epoch."""

    def __init__(self, run: Run, data: StoryData) -> None:
        self.run = run
        self.rows = data.train
        self.pad = data.tokenizer.pad_token_id
        self.layout = layout_of(run, data.tokenizer)

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        numbers = [self._number(place) for place in range(step * self.run.batch_size, (step + 1) * self.run.batch_size)]
        epoch = step * self.run.batch_size // len(self.rows)
        return batch_of(self.rows[numbers]["input_ids"], numbers, self.pad, self.layout, epoch)

    def _number(self, place: int) -> int:
        epoch, within = divmod(place, len(self.rows))
        if epoch != getattr(self, "_epoch", None):
            self._epoch, self._order = epoch, np.random.default_rng((self.run.seed, epoch)).permutation(len(self.rows))
        return int(self._order[within])


def layout_of(run: Run, tokenizer: PreTrainedTokenizerFast) -> FillInTheMiddle | None:
    """The baseline's layout; None for BST, which reads a story as it is."""
    return FillInTheMiddle.of(tokenizer, seed=run.seed) if run.model == "fim" else None


def batch_of(
    stories: Sequence[list[int]], numbers: Sequence[int], pad: int, layout: FillInTheMiddle | None, epoch: int = 0
) -> dict[str, Tensor]:
    """The arguments of a forward pass: `input_ids`, `attention_mask` and `labels`, [stories, longest]."""
    ids, labels = list(stories), list(stories)
    if layout is not None:
        drawn = replace(layout, seed=layout.seed + 1_000_003 * epoch)
        ids, labels = drawn({"input_ids": ids}, numbers).values()
    longest = max(map(len, ids))

    def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])

    mask = padded([[1] * len(row) for row in ids], 0)
    return {"input_ids": padded(ids, pad), "attention_mask": mask, "labels": padded(labels, IGNORED)}
