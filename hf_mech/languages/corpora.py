"""Text corpora, and their documents as token blocks of one length; each block begins with BOS, the empty stack."""

from __future__ import annotations

import hashlib
import json
import platform
import sysconfig
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict, disable_progress_bars, load_dataset
from tokenizers import Tokenizer, processors
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.data.data_collator import default_data_collator

from hf_mech.data.tokenizers import byte_level_bpe
from hf_mech.hub.files import replacing
from hf_mech.languages.nested_text import BEYOND
from hf_mech.languages.task import LanguagesError

# ----------------------------------------------------------------------------------------------------------------------
# Text corpora: a data set on the Hub, the user's files, or the sources of Python's standard library.


STDLIB = "python_stdlib"
_NOT_PROGRAMS = {
    *("test", "tests", "idle_test", "site-packages", "dist-packages", "lib-dynload", "__pycache__"),
    *("encodings", "pydoc_data"),  # tables, and a manual as one string
}
_MACHINES_OWN = ("_sysconfigdata", "config-", "sitecustomize", "usercustomize")
_BUCKETS = ("validation", "test", *["train"] * 9, *["pretraining"] * 9)
_TEXT_COLUMNS = ("text", "sentence")


@dataclass(frozen=True)
class Corpus:
    """Documents by split: `train`, `validation`, `test`, and optionally `pretraining`.

    Attributes:
        name: the data set's name, for results.
        config: its configuration; for the standard library, Python's version.
        splits: every split's documents, in reading order.
        digest: SHA-256 of the whole corpus; two machines with the same digest have the same corpus.
    """

    name: str
    config: str | None
    splits: dict[str, list[str]]
    digest: str

    @classmethod
    def of(cls, name: str, config: str | None, splits: dict[str, list[str]]) -> Corpus:
        """Checks the splits and computes the digest.

        Raises:
            LanguagesError: if train, validation or test is missing or holds no text.
        """
        for split in ("train", "validation", "test"):
            if not any(document.strip() for document in splits.get(split, [])):
                raise LanguagesError(
                    f"The corpus {name} has no text for the split {split!r}; expected documents for train, validation "
                    f"and test, got {', '.join(f'{len(d)} for {s}' for s, d in splits.items()) or 'none'}. Give every "
                    "split some text."
                )
        digest = hashlib.sha256()
        for split, documents in splits.items():
            for text in (split, *documents):
                encoded = text.encode()
                digest.update(b"%d:" % len(encoded) + encoded)
        return cls(name, config, splits, digest.hexdigest())


def stdlib_corpus(folder: Path | None = None, *, max_characters: int | None = None) -> Corpus:
    """The standard library's .py files: real, nested text that every machine has.

    A file's split depends only on a hash of its path: 1 in 20 goes to validation, 1 to test, 9 to training and 9 to
    pretraining. Tests, installed packages, data tables and files from the machine's own build are left out. Within a
    split the files are ordered by their hashes, so the beginning of a split is a fair sample.

    Args:
        folder: the library's folder; by default that of the running Python.
        max_characters: keep only this many first characters of `train`.

    Raises:
        LanguagesError: if the folder has too few files to fill every split.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    found = []
    for path in folder.rglob("*.py"):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        if not _NOT_PROGRAMS.intersection(name.parts) and not any(p.startswith(_MACHINES_OWN) for p in name.parts):
            found.append((hashlib.sha256(str(name).encode()).hexdigest(), path))
    splits: dict[str, list[str]] = {split: [] for split in ("train", "validation", "test", "pretraining")}
    for key, path in sorted(found):
        with tokenize.open(path) as source:  # reads the encoding that the file declares
            text = source.read()
        if text.strip():
            splits[_BUCKETS[int(key, 16) % len(_BUCKETS)]].append(text)
    splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of(STDLIB, f"python-{platform.python_version()}", splits)


def hub_corpus(
    name: str,
    config: str | None = None,
    *,
    revision: str | None = None,
    data_files: Mapping[str, Sequence[str]] | None = None,
    max_characters: int | None = None,
) -> Corpus:
    """A data set with the splits train, validation and test and a column `text` or `sentence`, by `load_dataset`.

    Every row that is not blank is a document, as usual for WikiText and PTB: a line, then EOS.

    Raises:
        LanguagesError: if a split is missing or empty, or there is no column of text.
    """
    loaded = load_dataset(name, config, revision=revision, data_files=data_files)
    splits = {}
    for split, rows in loaded.items():
        column = next((column for column in _TEXT_COLUMNS if column in rows.column_names), None)
        if column is None:
            raise LanguagesError(
                f"{name}, split {split!r}, has no column of text: expected {' or '.join(_TEXT_COLUMNS)}, got "
                f"{', '.join(rows.column_names)}. Rename the column, or write the text to files and use --train_file."
            )
        splits[str(split)] = [text for text in rows[column] if text.strip()]
    if "train" in splits:
        splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of(name, config, splits)


def file_corpus(files: Mapping[str, Sequence[str]], *, max_characters: int | None = None) -> Corpus:
    """Text files in UTF-8, each a document.

    Args:
        files: the files of every split.
        max_characters: keep only this many first characters of `train`.

    Raises:
        LanguagesError: if a file does not exist or a split has no text.
    """
    splits = {}
    for split, paths in files.items():
        missing = [path for path in paths if not Path(path).is_file()]
        if missing:
            raise LanguagesError(f"No such file for the split {split!r}: {', '.join(missing)}. Name files that exist.")
        splits[split] = [Path(path).read_text(encoding="utf-8") for path in paths]
    if "train" in splits:
        splits["train"] = beginning(splits["train"], max_characters)
    return Corpus.of("text", None, splits)


def beginning(documents: Iterable[str], max_characters: int | None) -> list[str]:
    """The first documents, at most `max_characters` in total; the last one is cut. None: all documents."""
    if max_characters is None:
        return list(documents)
    kept: list[str] = []
    for document in documents:
        if max_characters <= 0:
            break
        kept.append(document[:max_characters])
        max_characters -= len(document)
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# From documents to token blocks of one length; each block begins with BOS, the empty stack.


BLOCK = 128
"""Tokens in a block, including BOS (stack attention paper, App. B.2)."""
MASKED = 0.15
_BOS, _PAD, _EOS, _MASK = "<|bos|>", "<|pad|>", "<|eos|>", "<|mask|>"
_EVALUATION_MASKS = 2024
"""Seed of the masks for evaluation: the same for all models, so that perplexities can be compared."""


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
        return cls(**json.loads((folder / "prepared.json").read_text("utf-8")))


def train_tokenizer(documents: Iterable[str], vocabulary: int | None) -> PreTrainedTokenizerFast:
    """A byte-level BPE with BOS 0, PAD 1, EOS 2, MASK 3; it puts BOS before every text.

    Without a size of the vocabulary the tokens are the words between spaces, and a text with another word is refused.
    """
    special = [_BOS, _PAD, _EOS, _MASK]
    if vocabulary is None:
        words = sorted({word for text in documents for word in text.split()})
        backend = Tokenizer(WordLevel({token: index for index, token in enumerate([*special, *words])}))
        backend.pre_tokenizer = WhitespaceSplit()
    else:
        backend = byte_level_bpe(documents, vocabulary, special)
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
        LanguagesError: if the tokenizer has no BOS or no EOS.
    """
    check_tokens(tokenizer, "bos_token", "eos_token")
    texts = list(documents)
    tokens = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    stream = np.concatenate([np.array([*ids, tokenizer.eos_token_id], dtype=np.int32) for ids in tokens])
    rows = stream[: len(stream) // (length - 1) * (length - 1)].reshape(-1, length - 1)
    return np.pad(rows, ((0, 0), (1, 0)), constant_values=tokenizer.bos_token_id)


def rows_of(documents: Iterable[str], tokenizer: PreTrainedTokenizerBase, length: int = BLOCK) -> np.ndarray:
    """Every document as a row, BOS, its tokens, EOS and padding: [documents, longest] int32.

    Raises:
        LanguagesError: if the tokenizer has no BOS, EOS or padding, or a document has more tokens than `length` - 2.
    """
    check_tokens(tokenizer, "bos_token", "eos_token", "pad_token")
    bos, eos, pad = tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id
    tokens = tokenizer(list(documents), add_special_tokens=False, return_attention_mask=False)["input_ids"]
    width = max(map(len, tokens)) + 2
    if width > length:
        raise LanguagesError(
            f"The longest document has {width - 2:,} tokens; as a row it may have {length - 2}. Cut the documents, or "
            "leave them out."
        )
    return np.array([[bos, *ids, eos, *[pad] * (width - 2 - len(ids))] for ids in tokens], dtype=np.int32)


def check_tokens(tokenizer: PreTrainedTokenizerBase, *names: str) -> None:
    """Raises LanguagesError: the tokenizer lacks a special token."""
    for name in names:
        if getattr(tokenizer, f"{name}_id") is None:
            raise LanguagesError(
                f"{type(tokenizer).__name__} has no {name}, which every block needs. Set it: "
                f"tokenizer.{name} = one of the vocabulary's tokens, and save the tokenizer again."
            )


def prepare(
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    documents: bool = False,
    max_pretraining_characters: int | None = None,
    max_evaluation_blocks: int | None = None,
) -> Prepared:
    """Writes the corpus as blocks, and the tokenizer, to `folder`, completely or not at all.

    Args:
        documents: make a row of every document ([`rows_of`]) instead of blocks of their stream.
        max_pretraining_characters: keep only this many first characters of `pretraining`.
        max_evaluation_blocks: keep this many blocks of `validation`, of `test` and of `beyond`, evenly spaced.

    Raises:
        LanguagesError: if a split is shorter than one block.
    """
    disable_progress_bars()
    splits = {}
    for name, texts in corpus.splits.items():
        if not texts:
            continue
        kept = beginning(texts, max_pretraining_characters) if name == "pretraining" else texts
        blocks = rows_of(kept, tokenizer) if documents else blocks_of(kept, tokenizer)
        if not len(blocks):
            raise LanguagesError(
                f"The split {name!r} of {corpus.name} is shorter than one block of {BLOCK} tokens. Give it more text."
            )
        if name in ("validation", "test", BEYOND) and max_evaluation_blocks is not None:
            blocks = blocks[np.linspace(0, len(blocks) - 1, min(len(blocks), max_evaluation_blocks)).astype(int)]
        splits[name] = Dataset.from_dict({"input_ids": blocks})
    prepared = Prepared(
        corpus=corpus.name,
        config=corpus.config,
        digest=corpus.digest,
        vocabulary=len(tokenizer),
        blocks={name: len(rows) for name, rows in splits.items()},
    )
    with replacing(folder) as aside:
        DatasetDict(splits).save_to_disk(aside / "blocks")
        tokenizer.save_pretrained(aside / "tokenizer")
        (aside / "prepared.json").write_text(json.dumps(asdict(prepared), indent=1) + "\n", "utf-8")
    return prepared


class Collator:
    """From rows to a batch, with new masks each time; rows that already have masks (evaluation) stay unchanged.

    Args:
        tokenizer: for MLM it needs a mask token.
        objective: `clm` (labels are the input) or `mlm` (15 % of the tokens that are not special, as in BERT).

    Raises:
        LanguagesError: if the objective is `mlm` and the tokenizer has no mask token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, objective: str) -> None:
        if objective == "mlm" and tokenizer.mask_token_id is None:
            raise LanguagesError(
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
