"""Stories as tokens: TinyStories itself, a tokenizer, and prefix, middle and suffix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub import hf_hub_download
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from hf_mech.data.random_numbers import Draws
from hf_mech.data.tokenizers import byte_level_bpe
from hf_mech.lookahead import LookaheadError

# ----------------------------------------------------------------------------------------------------------------------
# TinyStories (Eldan & Li, 2023) from the Hugging Face Hub, in both of its editions.


TINYSTORIES = "roneneldan/TinyStories"
Edition = Literal["first", "gpt4"]

_SPLITS = {"train": "train", "validation": "valid"}  # the second edition's files have their own names
_END = "<|endoftext|>"


def load_tinystories(
    name: str = TINYSTORIES, *, edition: Edition = "first", revision: str | None = None
) -> DatasetDict:
    """The splits `train` and `validation` with the column `text`, without blank stories.

    Args:
        name: the data set on the Hub, or a copy of it.
        edition: `first`, the data set as `load_dataset` gives it; or `gpt4`, the two text files of the second edition,
            `TinyStoriesV2-GPT4-*.txt`, with about 2.7 million stories, the number in Section 5.
        revision: a commit or branch of the data set.

    Raises:
        LookaheadError: there is no such edition; a split or the column `text` is missing, or a split holds no story.
    """
    if edition not in get_args(Edition):
        raise LookaheadError(f"edition must be one of {', '.join(get_args(Edition))}, got {edition!r}.")
    try:
        if edition == "first":
            found = load_dataset(name, revision=revision)
        else:
            found = DatasetDict({split: _second(name, split, revision) for split in _SPLITS})
    except OSError as error:
        error.add_note('Without the Hub, load_dataset("hf_mech/stories", "grammar") has stories with the same column.')
        raise
    splits = {}
    for split in _SPLITS:
        if split not in found or "text" not in found[split].column_names:
            shape = {key: rows.column_names for key, rows in found.items()}
            raise LookaheadError(
                f"{name} must have the splits train and validation, each with the column text, got {shape}. Name a "
                "data set of that shape, or rename its columns and splits."
            )
        splits[split] = found[split].select_columns("text").filter(_has_words, input_columns="text")
        if not len(splits[split]):
            raise LookaheadError(f"The split {split!r} of {name} holds no story; every row of it is blank.")
    return DatasetDict(splits)


def _second(name: str, split: str, revision: str | None) -> Dataset:
    file = f"TinyStoriesV2-GPT4-{_SPLITS[split]}.txt"
    path = hf_hub_download(name, file, repo_type="dataset", revision=revision)
    return Dataset.from_generator(_stories_in, gen_kwargs={"path": path}, split=split)


def _stories_in(path: str) -> Iterator[dict[str, str]]:
    """The stories of a file in which each one ends with a line of its own; a file of gigabytes is read line by line."""
    lines: list[str] = []
    with Path(path).open(encoding="utf-8") as source:
        for line in source:
            if line.strip() == _END:
                yield {"text": "".join(lines).strip()}
                lines = []
            else:
                lines.append(line)
    if any(line.strip() for line in lines):
        yield {"text": "".join(lines).strip()}


def _has_words(text: str) -> bool:
    return bool(text.strip())


# ----------------------------------------------------------------------------------------------------------------------
# From stories to tokens: a BPE of 1,000, stories that are too long dropped, prefixes and suffixes of held-out ones.


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
        LookaheadError: the texts have too few different words for so large a vocabulary.
    """
    if isinstance(texts, Dataset):
        texts = (text for batch in texts.iter(1_000) for text in batch["text"])
    backend = byte_level_bpe(texts, vocabulary, [_PAD, _EOS, *SENTINELS.values()])
    if backend.get_vocab_size() != vocabulary:
        raise LookaheadError(
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
        LookaheadError: max_tokens below 2; the tokenizer has no EOS.
    """
    if max_tokens < 2:
        raise LookaheadError(f"max_tokens must be 2 or more, a token and EOS, got {max_tokens}.")
    if tokenizer.eos_token_id is None:
        raise LookaheadError(
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
        LookaheadError: a length below 1; the story leaves no token for the middle.
    """
    for name, value in (("prefix_tokens", prefix_tokens), ("suffix_tokens", suffix_tokens)):
        if value < 1:
            raise LookaheadError(f"{name} must be 1 or more, got {value}.")
    story = list(ids[:-1] if len(ids) and ids[-1] == eos else ids)
    needed = prefix_tokens + 1 + suffix_tokens
    if len(story) < needed:
        raise LookaheadError(
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
        LookaheadError: a number below 1; fewer than `count` stories are long enough.
    """
    if count < 1:
        raise LookaheadError(f"count must be 1 or more, got {count}.")
    least = prefix_tokens + suffix_tokens + 2  # a token of the middle, and EOS
    enough = rows.filter(_is_long, input_columns="input_ids", fn_kwargs={"least": least})
    if len(enough) < count:
        raise LookaheadError(
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


# ----------------------------------------------------------------------------------------------------------------------
# Fill-in-the-middle rows for a stock causal model, at the level of tokens: the baseline of Section 5.
#
# Two orders, after Bavarian et al. (2022):
#
# - `suffix-first`: `<|suffix|> suffix EOS <|prefix|> prefix middle EOS`. This is the paper's: a random suffix before
#   the story, trained on the story's tokens alone. The model is not told where the prefix ends, so one row trains every
#   prefix with that suffix: all t up to the cut. For a given t the suffix is uniform, as in Appendix D.1.
# - `prefix-first`: `<|prefix|> prefix <|suffix|> suffix EOS <|middle|> middle EOS`, trained on all tokens.
#
# The EOS behind the middle tells `generate` to stop. The empty suffix is EOS alone, so the same model continues a
# prefix without a goal.


Order = Literal["suffix-first", "prefix-first"]
IGNORED = -100


@dataclass(frozen=True)
class FillInTheMiddle:
    """Makes rows of stories, for `Dataset.map`, and the prompts of their models.

        layout = FillInTheMiddle.of(tokenizer)
        rows.map(layout, batched=True, with_indices=True, remove_columns=rows.column_names)

    Args:
        eos, prefix, suffix, middle: the ids of EOS and of the sentinels.
        order: see above.
        copies: the rows made of each story, each with a cut of its own.
        seed: of the cuts; a row depends on it, on the story's index and on nothing else. 0 or more.

    Raises:
        LookaheadError: an unknown order, a number out of its range, or two special tokens with one id.
    """

    eos: int
    prefix: int
    suffix: int
    middle: int
    order: Order = "suffix-first"
    copies: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise LookaheadError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}.")
        for name, least in (("copies", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise LookaheadError(f"{name} must be {least} or more, got {getattr(self, name)}.")
        ids = (self.eos, self.prefix, self.suffix, self.middle)
        if len(set(ids)) < len(ids):
            raise LookaheadError(f"EOS, prefix, suffix and middle must be four different tokens, got {ids}.")

    @classmethod
    def of(
        cls, tokenizer: PreTrainedTokenizerBase, *, order: Order = "suffix-first", copies: int = 1, seed: int = 0
    ) -> Self:
        """The layout with a tokenizer's own tokens, as those of `train_story_tokenizer`.

        Raises:
            LookaheadError: the tokenizer lacks EOS or a sentinel.
        """
        found: dict[str, Any] = {name: getattr(tokenizer, f"{name}_id", None) for name in ("eos_token", *SENTINELS)}
        if missing := [name for name, token in found.items() if token is None]:
            raise LookaheadError(
                f"{type(tokenizer).__name__} has no {', '.join(missing)}. Add what is missing: tokenizer."
                f"add_special_tokens({{'extra_special_tokens': {SENTINELS}}}), and enlarge the model's embeddings."
            )
        eos, prefix, suffix, middle = found.values()
        return cls(eos, prefix, suffix, middle, order, copies, seed)

    @property
    def extra_tokens(self) -> int:
        """The tokens of a row beyond those of its story and its EOS."""
        return 3 if self.order == "suffix-first" else 4

    def __call__(self, batch: dict[str, list[list[int]]], indices: Sequence[int]) -> dict[str, list[list[int]]]:
        """Rows with `input_ids` and `labels` (-100: not trained), `copies` of each story.

        Args:
            batch: stories in the column `input_ids`, each with EOS behind it, as `tokenize_stories` gives them.
            indices: the stories' places in the data set.

        Raises:
            LookaheadError: a story without a token.
        """
        rows: dict[str, list[list[int]]] = {"input_ids": [], "labels": []}
        for ids, index in zip(batch["input_ids"], indices, strict=True):
            story = ids[:-1] if ids and ids[-1] == self.eos else ids
            if not story:
                raise LookaheadError(f"Story {index} has no token before EOS; leave out empty stories.")
            draws = Draws(f"stories/infilling/{self.order}/{self.seed}/{index}")
            for _ in range(self.copies):
                input_ids, labels = self._row(list(story), draws)
                rows["input_ids"].append(input_ids)
                rows["labels"].append(labels)
        return rows

    def _row(self, story: list[int], draws: Draws) -> tuple[list[int], list[int]]:
        if self.order == "suffix-first":
            cut = 1 + draws.below(len(story))
            prompt = self.prompt((), story[cut:])
            answer = [*story[:cut], self.eos]
            return prompt + answer, [IGNORED] * len(prompt) + answer
        # Two cuts behind the first token, in order; equal ones leave an empty middle.
        first, last = sorted((1 + draws.below(len(story)), 1 + draws.below(len(story))))
        row = [*self.prompt(story[:first], story[last:]), *story[first:last], self.eos]
        return row, row

    def prompt(self, prefix_ids: Sequence[int], suffix_ids: Sequence[int] = ()) -> list[int]:
        """The tokens that a trained model continues with the middle and EOS.

        Args:
            prefix_ids: the beginning of the story.
            suffix_ids: its end, without EOS; empty if there is no goal.
        """
        suffix = [self.suffix, *suffix_ids, self.eos]
        if self.order == "suffix-first":
            return [*suffix, self.prefix, *prefix_ids]
        return [self.prefix, *prefix_ids, *suffix, self.middle]
