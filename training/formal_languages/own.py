"""The user's pairs of texts: their symbols as tokens, and their rows as batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from hf_mech.languages.rows import BOS, IGNORED, MASK, PAD, SEP, SPECIAL_TOKENS, Layout, symbol_tokenizer

from ..engine import SettingsError
from .models import Growth, without_empty_mask
from .settings import Run

Pair = tuple[list[int], list[int]]
"""The tokens of an input and of its output."""
_BOS, _PAD, _SEP, _MASK = (SPECIAL_TOKENS.index(token) for token in (BOS, PAD, SEP, MASK))


@dataclass(frozen=True)
class Texts:
    """The user's texts.

    Attributes:
        tokenizer: of the symbols of the training data.
        train, test: by the length of the input, the shortest first.
    """

    tokenizer: PreTrainedTokenizerFast
    train: list[Pair]
    test: list[Pair]

    @property
    def longest(self) -> int:
        """Symbols of the longest training input."""
        return len(self.train[-1][0])

    @property
    def width(self) -> int:
        """Tokens of the longest row of a batch."""
        return max(len(x) + len(y) for x, y in (*self.train, *self.test)) + 2

    def test_by_length(self) -> dict[int, list[Pair]]:
        """The test pairs by the length of their input."""
        return {length: list(pairs) for length, pairs in groupby(self.test, lambda pair: len(pair[0]))}


def read_texts(run: Run) -> Texts:
    """The user's data.

    Raises:
        SettingsError: a text is empty, or a symbol of the test data is not in the training data.
        LanguagesError: a symbol that no tokenizer can have.
    """
    splits = run.own_splits()
    columns = [values_of(splits["train"], name) for name in ("inputs", "outputs")]
    apart = any(isinstance(text, str) and len(text.split()) > 1 for column in columns for text in column)
    symbols = sorted({symbol for column in columns for text in column for symbol in symbols_of(text, apart)})
    tokenizer = symbol_tokenizer(symbols, characters=not apart and isinstance(columns[0][0], str))
    ids = {symbol: number for number, symbol in enumerate((*SPECIAL_TOKENS, *symbols))}
    made: dict[str, list[Pair]] = {}
    for split, rows in splits.items():
        pairs = zip(values_of(rows, "inputs"), values_of(rows, "outputs"), strict=True)
        made[split] = []
        for number, pair in enumerate(pairs):
            texts = [symbols_of(text, apart) for text in pair]
            where = f"{run.own_data}, split {split}, row {number}"
            if not all(texts):
                raise SettingsError(f"{where}: expected an input and an output, got {pair!r:.80}.")
            if unknown := [symbol for text in texts for symbol in text if symbol not in ids]:
                raise SettingsError(f"{where} has the symbol {unknown[0]!r}, which no training text has.")
            x, y = ([ids[symbol] for symbol in text] for text in texts)
            made[split].append((x, y))
    return Texts(tokenizer, *(sorted(pairs, key=lambda pair: len(pair[0])) for pairs in made.values()))


def values_of(rows: datasets.Dataset, column: str) -> list[Any]:
    """The column's texts; lists of class labels by the names of their classes."""
    texts, kind = rows[column][:], getattr(rows.features[column], "feature", None)
    return [kind.int2str(text) for text in texts] if isinstance(kind, datasets.ClassLabel) else texts


def symbols_of(text: str | Sequence[Any] | None, apart: bool) -> list[str]:
    """The symbols of a text: those of a list, or words, or characters where no text of the data has two words."""
    if isinstance(text, str):
        return text.split() if apart else list(text.strip())
    return [str(symbol) for symbol in text or ()]


def batch_of(pairs: Sequence[Pair], layout: Layout) -> dict[str, Tensor]:
    """`input_ids`, `attention_mask` and `labels` of pairs, [pairs, longest], as `hf_mech.languages.rows` has them."""
    rows, labels = [], []
    for x, y in pairs:
        row = [_BOS, *x, *([_MASK] * len(y) if layout == "mlm" else [_SEP, *y])]
        rows.append(torch.tensor(row))
        labels.append(torch.tensor([*[IGNORED] * (len(row) - len(y)), *y]))
    return {
        "input_ids": pad_sequence(rows, batch_first=True, padding_value=_PAD),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in rows], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }


class OwnBatches(Dataset[dict[str, Tensor]]):
    """The training batches by step: each a pure function of the seed, the step and the longest input so far."""

    def __init__(self, run: Run, texts: Texts, growth: Growth) -> None:
        self.run, self.texts, self.growth = run, texts, growth
        self.lengths = [len(x) for x, _ in texts.train]

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        known = bisect_right(self.lengths, max(self.growth.longest, self.lengths[0]))
        chosen = np.random.default_rng((self.run.seed, step)).integers(known, size=self.run.batch_size)
        return without_empty_mask(batch_of([self.texts.train[number] for number in chosen], self.run.layout))
