"""From documents to token blocks of one length; each block begins with BOS, the empty stack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict, disable_progress_bars
from tokenizers import processors
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.data.data_collator import default_data_collator

from hf_mech.data.tokenizers import byte_level_bpe
from hf_mech.hub.disk.files import write_text_atomically
from hf_mech.languages.corpora import Corpus, CorpusError, beginning

BLOCK = 128
"""Tokens in a block, including BOS (stack attention paper, App. B.2)."""
MASKED = 0.15
_BOS, _PAD, _EOS, _MASK = "<|bos|>", "<|pad|>", "<|eos|>", "<|mask|>"
_EVALUATION_MASKS = 2024
"""Seed of the masks for evaluation: the same for all models, so that perplexities can be compared."""


class TokenizerError(ValueError):
    """A tokenizer that lacks a token which the blocks or the objective need."""


@dataclass(frozen=True)
class Prepared:
    """The metadata of a folder of prepared data.

    Attributes:
        corpus, config, digest: the corpus, see [`Corpus`].
        vocabulary: the tokenizer's vocabulary size.
        blocks: the number of blocks of every split.
    """

    corpus: str
    config: str | None
    digest: str
    vocabulary: int
    blocks: dict[str, int]

    @classmethod
    def load(cls, folder: Path) -> Prepared:
        return cls(**json.loads((folder / "prepared.json").read_text()))


def train_tokenizer(documents: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE with BOS 0, PAD 1, EOS 2, MASK 3; it puts BOS before every text."""
    backend = byte_level_bpe(documents, vocabulary, [_BOS, _PAD, _EOS, _MASK])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{_BOS} $A", special_tokens=[(_BOS, backend.token_to_id(_BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=_BOS, pad_token=_PAD, eos_token=_EOS, mask_token=_MASK
    )


def blocks_of(documents: Iterable[str], tokenizer: PreTrainedTokenizerBase, length: int = BLOCK) -> np.ndarray:
    """The documents' tokens, with EOS after each, cut into blocks that begin with BOS: [blocks, length] int32.

    An incomplete last block is dropped.

    Raises:
        TokenizerError: if the tokenizer has no BOS or no EOS.
    """
    for name in ("bos_token", "eos_token"):
        if getattr(tokenizer, f"{name}_id") is None:
            raise TokenizerError(
                f"{type(tokenizer).__name__} has no {name}, which every block needs. Set it: "
                f"tokenizer.{name} = one of the vocabulary's tokens, and save the tokenizer again."
            )
    texts = list(documents)
    tokens = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    stream = np.concatenate([np.array([*ids, tokenizer.eos_token_id], dtype=np.int32) for ids in tokens])
    rows = stream[: len(stream) // (length - 1) * (length - 1)].reshape(-1, length - 1)
    return np.pad(rows, ((0, 0), (1, 0)), constant_values=tokenizer.bos_token_id)


def prepare(
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    max_pretraining_characters: int | None = None,
    max_evaluation_blocks: int | None = None,
) -> Prepared:
    """Writes the corpus as blocks, and the tokenizer, to `folder`, completely or not at all.

    Args:
        max_pretraining_characters: keep only this many first characters of `pretraining`.
        max_evaluation_blocks: keep this many blocks of `validation` and of `test`, evenly spaced.

    Raises:
        CorpusError: if a split is shorter than one block.
    """
    disable_progress_bars()
    splits = {}
    for name, documents in corpus.splits.items():
        if not documents:
            continue
        kept = beginning(documents, max_pretraining_characters) if name == "pretraining" else documents
        blocks = blocks_of(kept, tokenizer)
        if not len(blocks):
            raise CorpusError(
                f"The split {name!r} of {corpus.name} is shorter than one block of {BLOCK} tokens. Give it more text."
            )
        if name in ("validation", "test") and max_evaluation_blocks is not None:
            blocks = blocks[np.linspace(0, len(blocks) - 1, min(len(blocks), max_evaluation_blocks)).astype(int)]
        splits[name] = Dataset.from_dict({"input_ids": blocks})
    prepared = Prepared(
        corpus=corpus.name,
        config=corpus.config,
        digest=corpus.digest,
        vocabulary=len(tokenizer),
        blocks={name: len(rows) for name, rows in splits.items()},
    )
    aside = folder.with_name(f"{folder.name}-saving")
    shutil.rmtree(aside, ignore_errors=True)  # left by a killed run
    DatasetDict(splits).save_to_disk(aside / "blocks")
    tokenizer.save_pretrained(aside / "tokenizer")
    write_text_atomically(aside / "prepared.json", json.dumps(asdict(prepared), indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)
    return prepared


class Collator:
    """From rows to a batch, with new masks each time; rows that already have masks (evaluation) stay unchanged.

    Args:
        tokenizer: for MLM it needs a mask token.
        objective: `clm` (labels are the input) or `mlm` (15 % of the tokens that are not special, as in BERT).

    Raises:
        TokenizerError: if the objective is `mlm` and the tokenizer has no mask token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, objective: str) -> None:
        if objective == "mlm" and tokenizer.mask_token_id is None:
            raise TokenizerError(
                f"{type(tokenizer).__name__} has no mask token, which --objective mlm needs. Take a tokenizer of a "
                "masked language model, or --objective clm."
            )
        self._label = DataCollatorForLanguageModeling(tokenizer, mlm=objective == "mlm", mlm_probability=MASKED)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return default_data_collator(rows) if "labels" in rows[0] else self._label(rows)


def evaluation_rows(rows: Dataset, tokenizer: PreTrainedTokenizerBase, objective: str) -> Dataset:
    """The split with its labels, and for `mlm` with masks that are the same every time."""
    with torch.random.fork_rng():  # the collator refuses its own seed in a worker process
        torch.manual_seed(_EVALUATION_MASKS)
        batch = Collator(tokenizer, objective)(list(rows))
    return Dataset.from_dict({name: batch[name].numpy() for name in ("input_ids", "labels")}).with_format("torch")
