"""Automatic measures of completions: do they join the suffix, are they the story's own words, how likely are they."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.grammar import read


@dataclass(frozen=True)
class Joins:
    """How well completions join their prefixes and suffixes, by the grammar; shares of all stories.

    Attributes:
        joined: whole stories of the grammar whose parts agree.
        grammatical: whole stories of the grammar, also with contradictions.
        read: the mean share of a story's characters up to the first one that leaves the grammar.
        contradictions: the mean number of contradictions in a story.
    """

    joined: float
    grammatical: float
    read: float
    contradictions: float


def joins(stories: Sequence[str]) -> Joins:
    """Measure whole stories of `hf_mech/stories`: prefix, completion and suffix as one text.

    Raises:
        LookaheadError: no story.
    """
    _some(stories)
    texts = [" ".join(story.split()) for story in stories]
    readings = [read(text) for text in texts]
    return Joins(
        joined=fmean(reading.consistent for reading in readings),
        grammatical=fmean(reading.complete for reading in readings),
        read=fmean(min(1.0, r.read / max(1, len(text))) for r, text in zip(readings, texts, strict=True)),
        contradictions=fmean(len(reading.contradictions) for reading in readings),
    )


def exact_match(completions: Sequence[str], middles: Sequence[str]) -> float:
    """The share of completions with the words of the story's own middle; white space does not matter.

    Raises:
        LookaheadError: no completion, or another number of middles.
    """
    _some(completions)
    if len(completions) != len(middles):
        raise LookaheadError(f"Each completion needs a middle, got {len(completions)} and {len(middles)}.")
    return fmean(ours.split() == theirs.split() for ours, theirs in zip(completions, middles, strict=True))


def log_likelihoods(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    beginnings: Sequence[str] | None = None,
    batch_size: int = 16,
) -> list[float]:
    """The mean log-probability of a token under a held-out causal model, in nats, for each text.

    Special tokens, such as BOS, are read and not scored.

    Args:
        model: any model of `AutoModelForCausalLM`, trained on other data or with another seed than the judged ones. It
            is used in evaluation mode, on its own device.
        tokenizer: the model's own, a fast one if there are `beginnings`.
        texts: whole stories.
        beginnings: the first characters of each text, such as its prefix: only tokens that end behind them are scored.
            Without them, all tokens are scored; the first one only if the tokenizer puts BOS before it.
        batch_size: texts at a time; it changes nothing but speed and rounding.

    Raises:
        LookaheadError: a text does not begin with its beginning, has no token to score, or has more tokens than the
            model has positions; a slow tokenizer with `beginnings`; a batch_size below 1.
    """
    _some(texts)
    if batch_size < 1:
        raise LookaheadError(f"batch_size must be 1 or more, got {batch_size}.")
    starts = _starts(texts, beginnings, tokenizer)
    rows = [_tokens(number, text, start, model, tokenizer) for number, (text, start) in enumerate(starts)]
    by_length = sorted(range(len(rows)), key=lambda number: len(rows[number][0]))
    found = [0.0] * len(rows)
    was_training = model.training
    model.eval()
    try:
        for first in range(0, len(rows), batch_size):
            chosen = by_length[first : first + batch_size]
            for number, value in zip(chosen, _means(model, [rows[n] for n in chosen]), strict=True):
                found[number] = value
    finally:
        model.train(was_training)
    return found


def _some(texts: Sequence[str]) -> None:
    if not texts:
        raise LookaheadError("At least one story is needed, got none.")


def _starts(
    texts: Sequence[str], beginnings: Sequence[str] | None, tokenizer: PreTrainedTokenizerBase
) -> list[tuple[str, int]]:
    """Each text, and the number of its first characters that are not scored."""
    if beginnings is None:
        return [(text, 0) for text in texts]
    if not tokenizer.is_fast:
        raise LookaheadError(
            f"{type(tokenizer).__name__} cannot tell which characters a token stands for, which `beginnings` needs. "
            "Take a fast tokenizer, or score whole texts."
        )
    if len(beginnings) != len(texts):
        raise LookaheadError(f"Each text needs a beginning, got {len(texts)} and {len(beginnings)}.")
    if wrong := [
        n for n, (text, begin) in enumerate(zip(texts, beginnings, strict=True)) if not text.startswith(begin)
    ]:
        raise LookaheadError(f"The texts {wrong} do not begin with their beginnings; give whole texts.")
    return [(text, len(begin)) for text, begin in zip(texts, beginnings, strict=True)]


def _tokens(
    number: int, text: str, start: int, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> tuple[list[int], list[int]]:
    """A text's ids, and its labels: -100 where a token is not scored."""
    encoded: Any = tokenizer(text, return_offsets_mapping=start > 0, verbose=False)
    ids = encoded["input_ids"]
    special = set(tokenizer.all_special_ids)
    ends = [end for _, end in encoded["offset_mapping"]] if start else [1] * len(ids)
    labels = [
        -100 if place == 0 or token in special or end <= start else token
        for place, (token, end) in enumerate(zip(ids, ends, strict=True))
    ]
    if all(label == -100 for label in labels):
        raise LookaheadError(f"Text {number} has no token to score behind its first {start} characters.")
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest is not None and len(ids) > longest:
        raise LookaheadError(
            f"Text {number} has {len(ids)} tokens, and {type(model).__name__} has {longest} positions. Leave it out, "
            "or take another model."
        )
    return ids, labels


@torch.no_grad()
def _means(model: PreTrainedModel, rows: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    """The mean log-probability of each row's labels."""
    length = max(len(ids) for ids, _ in rows)

    def padded(values: Sequence[list[int]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (length - len(row)) for row in values], device=model.device)

    ids = padded([ids for ids, _ in rows], 0)
    labels = padded([labels for _, labels in rows], -100)[:, 1:]
    mask = padded([[1] * len(ids) for ids, _ in rows], 0)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
    losses = cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="none")
    means: list[float] = (-losses.sum(1) / (labels != -100).sum(1)).tolist()
    return means
