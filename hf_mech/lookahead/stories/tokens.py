"""From stories to tokens: a BPE of 1,000, stories that are too long dropped, prefixes and suffixes of held-out ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from datasets import Dataset
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from hf_mech.data.tokenizers import byte_level_bpe
from hf_mech.lookahead.stories.errors import ShortStoryError, StorySettingsError, StoryTokenizerError

VOCABULARY = 1_000
MAX_TOKENS = 256
HELD_OUT = 100
PREFIX_TOKENS = 50
SUFFIX_TOKENS = 100

SENTINELS = {"prefix_token": "<|prefix|>", "suffix_token": "<|suffix|>", "middle_token": "<|middle|>"}
"""Tokens of the fill-in-the-middle baseline; a tokenizer has them as attributes of these names, with their ids."""
_PAD, _EOS = "<|pad|>", "<|eos|>"


def train_story_tokenizer(texts: Dataset | Iterable[str], vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """A byte-level BPE with PAD 0, EOS 1 and the sentinels 2 to 4. It adds no token to a text.

    Args:
        texts: the training stories: texts, or a data set with the column `text`.
        vocabulary: all tokens, the 5 special ones and the 256 bytes included (Section 5: 1,000).

    Raises:
        StoryTokenizerError: the texts have too few different words for so large a vocabulary.
    """
    if isinstance(texts, Dataset):
        texts = (text for batch in texts.iter(1_000) for text in batch["text"])
    backend = byte_level_bpe(texts, vocabulary, [_PAD, _EOS, *SENTINELS.values()])
    if backend.get_vocab_size() != vocabulary:
        raise StoryTokenizerError(
            f"The stories give a vocabulary of {backend.get_vocab_size()}, not of {vocabulary}: with {len(SENTINELS)} "
            "sentinels, PAD, EOS and 256 bytes, they need enough words for the other tokens. Give more stories, or "
            "another size."
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token=_PAD, eos_token=_EOS, extra_special_tokens=dict(SENTINELS)
    )


@dataclass(frozen=True)
class Tokenized:
    """Stories as tokens.

    Attributes:
        rows: a data set with the column `input_ids`; every row ends with EOS.
        dropped: the number of stories that had too many tokens.
    """

    rows: Dataset
    dropped: int


def tokenize_stories(
    stories: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_tokens: int = MAX_TOKENS, num_proc: int | None = None
) -> Tokenized:
    """The stories' tokens, with EOS behind each, without those over `max_tokens` (Section 5), cached by `datasets`.

    Args:
        stories: a data set with the column `text`.
        tokenizer: any with an EOS token.
        max_tokens: the most tokens of a story, EOS included, so that a model of so many positions reads every row.
        num_proc: the number of processes.

    Raises:
        StorySettingsError: max_tokens below 2.
        StoryTokenizerError: the tokenizer has no EOS.
    """
    if max_tokens < 2:
        raise StorySettingsError(f"max_tokens must be 2 or more, a token and EOS, got {max_tokens}.")
    if tokenizer.eos_token_id is None:
        raise StoryTokenizerError(
            f"{type(tokenizer).__name__} has no eos_token, which every story ends with. Set it: tokenizer.eos_token = "
            "one of the vocabulary's tokens, and save the tokenizer again."
        )
    whole = stories.map(
        _to_ids,
        batched=True,
        remove_columns=stories.column_names,
        fn_kwargs={"tokenizer": tokenizer},
        num_proc=num_proc,
        desc="tokens",
    )
    rows = whole.filter(_fits, input_columns="input_ids", fn_kwargs={"max_tokens": max_tokens}, desc="length")
    return Tokenized(rows, len(whole) - len(rows))


def _to_ids(batch: dict[str, list[str]], tokenizer: PreTrainedTokenizerBase) -> dict[str, list[list[int]]]:
    ids = tokenizer(batch["text"], add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    return {"input_ids": [[*story, tokenizer.eos_token_id] for story in ids]}


def _fits(ids: Sequence[int], max_tokens: int) -> bool:
    return len(ids) <= max_tokens


class Snippet(NamedTuple):
    """The parts of a story, in tokens, without EOS."""

    prefix: list[int]
    middle: list[int]
    suffix: list[int]


def split_story(
    ids: Sequence[int], eos: int, *, prefix_tokens: int = PREFIX_TOKENS, suffix_tokens: int = SUFFIX_TOKENS
) -> Snippet:
    """The first tokens of a story, the last ones before EOS, and the middle between them (Appendix D.2).

    Args:
        ids: a story, with or without EOS behind it.
        eos: the id of EOS.

    Raises:
        StorySettingsError: a length below 1.
        ShortStoryError: the story leaves no token for the middle.
    """
    for name, value in (("prefix_tokens", prefix_tokens), ("suffix_tokens", suffix_tokens)):
        if value < 1:
            raise StorySettingsError(f"{name} must be 1 or more, got {value}.")
    story = list(ids[:-1] if len(ids) and ids[-1] == eos else ids)
    needed = prefix_tokens + 1 + suffix_tokens
    if len(story) < needed:
        raise ShortStoryError(
            f"A prefix of {prefix_tokens} tokens, a middle of at least one and a suffix of {suffix_tokens} need a "
            f"story of {needed} tokens, got {len(story)}. Take a longer story, or a shorter prefix or suffix."
        )
    end = len(story) - suffix_tokens
    return Snippet(story[:prefix_tokens], story[prefix_tokens:end], story[end:])


def held_out_snippets(
    rows: Dataset,
    eos: int,
    *,
    count: int = HELD_OUT,
    prefix_tokens: int = PREFIX_TOKENS,
    suffix_tokens: int = SUFFIX_TOKENS,
) -> Dataset:
    """The first `count` stories of a split that are long enough, as columns `prefix_ids`, `middle_ids`, `suffix_ids`.

    Args:
        rows: held-out stories as `tokenize_stories` gives them.
        eos: the id of EOS.

    Raises:
        StorySettingsError: a number below 1.
        ShortStoryError: fewer than `count` stories are long enough.
    """
    if count < 1:
        raise StorySettingsError(f"count must be 1 or more, got {count}.")
    least = prefix_tokens + suffix_tokens + 2  # a token of the middle, and EOS
    enough = rows.filter(_is_long, input_columns="input_ids", fn_kwargs={"least": least})
    if len(enough) < count:
        raise ShortStoryError(
            f"{count} stories of {least - 1} tokens or more are needed for a prefix of {prefix_tokens}, a middle and a "
            f"suffix of {suffix_tokens}, got {len(enough)} among {len(rows)}. Give more held-out stories, or ask for "
            "fewer or shorter ones."
        )
    return enough.select(range(count)).map(
        _parts,
        remove_columns=enough.column_names,
        fn_kwargs={"eos": eos, "prefix_tokens": prefix_tokens, "suffix_tokens": suffix_tokens},
    )


def _is_long(ids: Sequence[int], least: int) -> bool:
    return len(ids) >= least


def _parts(row: dict[str, list[int]], eos: int, prefix_tokens: int, suffix_tokens: int) -> dict[str, list[int]]:
    parts = split_story(row["input_ids"], eos, prefix_tokens=prefix_tokens, suffix_tokens=suffix_tokens)
    return {f"{name}_ids": ids for name, ids in parts._asdict().items()}
