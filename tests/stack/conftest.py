"""Stock tokenizers for the tests of the stack models."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Tokenizer, RobertaTokenizer

from .stock import BPE, TEXT


@pytest.fixture(scope="module")
def stock_tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """RoBERTa's and GPT-2's own tokenizers, with a small vocabulary."""
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(TEXT, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"], **BPE)
    folder = tmp_path_factory.mktemp("tokenizer")
    bpe.save_model(str(folder))
    files = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
    return {"RobertaTokenizer": RobertaTokenizer(**files), "GPT2Tokenizer": GPT2Tokenizer(**files, pad_token="<pad>")}
