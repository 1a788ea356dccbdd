"""Blocks: the text's own tokens behind BOS, and masks for masked language models."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
from datasets import load_from_disk
from transformers import AutoTokenizer

from hf_mech.languages import LanguagesError
from hf_mech.languages.corpora import (
    BLOCK,
    Collator,
    Corpus,
    Prepared,
    blocks_of,
    evaluation_rows,
    prepare,
    train_tokenizer,
)
from tests.languages.text.programs import SPLITS, prepare_programs, program


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_programs(tmp_path_factory.mktemp("data") / "prepared")


def test_blocks_are_the_text_behind_bos():
    documents = [program(1), program(2), program(3, lines=1)]
    tokenizer = train_tokenizer(documents, 300)
    assert len(tokenizer) == 300
    assert tokenizer("x = 1")["input_ids"][0] == tokenizer.bos_token_id == 0
    blocks = blocks_of(documents, tokenizer)
    assert blocks.shape[1] == BLOCK == 128
    assert (blocks[:, 0] == tokenizer.bos_token_id).all()
    expected = []
    for document in documents:
        expected += [*tokenizer(document, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    read = blocks[:, 1:].ravel()
    assert read.tolist() == expected[: len(read)]
    assert len(expected) - len(read) < 127
    decoded = tokenizer.decode(read[: read.tolist().index(tokenizer.eos_token_id)])
    assert decoded == documents[0]


def test_a_folder_of_prepared_data_says_what_it_holds(prepared: Path):
    found, splits = Prepared.load(prepared), load_from_disk(prepared / "blocks")
    assert (found.corpus, found.config, found.vocabulary) == ("programs", None, 300)
    assert found.blocks == {name: len(splits[name]) for name in SPLITS}
    assert found.blocks["validation"] == found.blocks["test"] == 4 < found.blocks["train"]


def test_a_split_shorter_than_a_block_is_refused(tmp_path: Path):
    short = Corpus.of("short", None, {"train": [program(1)], "validation": [program(2)], "test": ["x = 1"]})
    with pytest.raises(LanguagesError, match="'test' of short is shorter than one block of 128"):
        prepare(short, train_tokenizer([program(1)], 300), tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_a_tokenizer_that_lacks_a_token_is_refused():
    tokenizer = train_tokenizer([program(1)], 300)
    tokenizer.mask_token = None
    with pytest.raises(LanguagesError, match="no mask token, which --objective mlm needs"):
        Collator(tokenizer, "mlm")
    tokenizer.bos_token = None
    with pytest.raises(LanguagesError, match="no bos_token"):
        blocks_of([program(1)], tokenizer)


def test_evaluation_masks_are_fixed_and_training_masks_are_not(prepared: Path, monkeypatch: pytest.MonkeyPatch):
    tokenizer = AutoTokenizer.from_pretrained(prepared / "tokenizer")
    rows = load_from_disk(prepared / "blocks")["train"].with_format("torch")
    first = evaluation_rows(rows, tokenizer, "mlm")[:]
    torch.manual_seed(7)
    monkeypatch.setattr(multiprocessing.current_process(), "name", "SpawnProcess-1")  # as one of several jobs
    again = evaluation_rows(rows, tokenizer, "mlm")[:]
    for name in ("input_ids", "labels"):
        assert torch.equal(first[name], again[name])
    masked = first["labels"] != -100
    assert 0.1 < masked.float().mean() < 0.2
    special = torch.isin(rows[:]["input_ids"], torch.tensor([tokenizer.bos_token_id, tokenizer.eos_token_id]))
    assert special.any(1).all()
    assert not (masked & special).any()
    assert torch.equal(torch.where(masked, first["labels"], first["input_ids"]), rows[:]["input_ids"])
    collate = Collator(tokenizer, "mlm")
    batches = [collate([rows[0], rows[1]])["input_ids"] for _ in range(2)]
    assert not torch.equal(*batches)
    assert torch.equal(
        collate([{"input_ids": rows[0]["input_ids"], "labels": first["labels"][0]}])["labels"][0], first["labels"][0]
    )
