"""Stock tokenizers for the tests of the stack models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stock import gpt2_tokenizer, roberta_tokenizer


@pytest.fixture(scope="module")
def stock_tokenizers() -> dict[str, Any]:
    """RoBERTa's and GPT-2's own tokenizers, with a small vocabulary; a padding token is added to GPT-2's."""
    gpt2 = gpt2_tokenizer()
    gpt2.add_special_tokens({"pad_token": "<pad>"})
    return {"RobertaTokenizer": roberta_tokenizer(), "GPT2Tokenizer": gpt2}
