"""The user's prompts and completions: their words as tokens, their batches, and the share of right completions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import datasets
import torch
from accelerate.utils import send_to_device
from transformers import PreTrainedModel

from hf_mech.programs.templatic.batches import IGNORED, Layout, TrainingBatches, lengths_of, word_tokenizer, words_of

from .models import Vocabulary
from .settings import BELIEF_STATES, Run


@dataclass(frozen=True)
class OwnRows:
    """The user's rows.

    Attributes:
        train, test: `prompt` and `completion`.
        layout: of the words of the training data.
        vocabulary: for the model.
    """

    train: datasets.Dataset
    test: datasets.Dataset
    layout: Layout
    vocabulary: Vocabulary


def read_rows(run: Run) -> OwnRows:
    """The user's data. Raises SettingsError, see `OwnData.own_splits`."""
    splits = run.own_splits()
    texts = (text for name in ("prompt", "completion") for text in splits["train"][name])
    tokenizer = word_tokenizer(words_of(texts))
    longest = 1 + max(int(lengths_of(rows).max()) for rows in splits.values())
    vocabulary = Vocabulary(len(tokenizer), longest, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return OwnRows(splits["train"], splits["test"], Layout(tokenizer, "decoder_unpadded"), vocabulary)


class OwnBatches(TrainingBatches):
    """Item `step` is the batch of that step: arguments of the model's forward."""

    def __init__(self, run: Run, rows: OwnRows) -> None:
        super().__init__(rows.train, rows.layout, run.batch_size, run.seed)
        self.more = {"logits_to_keep": 1} if run.model in BELIEF_STATES else {}  # their loss needs no logits

    def __getitem__(self, step: int) -> dict[str, Any]:
        return super().__getitem__(step) | self.more


@torch.no_grad()
def own_accuracy(model: PreTrainedModel, rows: datasets.Dataset, layout: Layout, batch_size: int) -> float:
    """The share of completions that greedy decoding says in every word, and ends there; measured in one pass each.

    Args:
        model: in evaluation mode.
        rows: with `prompt` and `completion`.
        layout: of the rows.
        batch_size: rows at a time.
    """
    right = 0
    for first in range(0, len(rows), batch_size):
        batch = send_to_device(layout.training(rows[first : first + batch_size]), model.device)
        labels = batch.pop("labels")[:, 1:]
        said = model(**batch).logits[:, :-1].argmax(-1)
        right += int(((said == labels) | (labels == IGNORED)).all(1).sum())
    return right / len(rows)
