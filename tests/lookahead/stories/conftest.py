"""Stories and their tokenizer, once for all tests of the folder."""

from __future__ import annotations

import pytest
from datasets import Dataset
from transformers import PreTrainedTokenizerFast

from hf_mech.lookahead.stories.grammar import stories
from hf_mech.lookahead.stories.tokens import tokenize_stories, train_story_tokenizer


@pytest.fixture(scope="session")
def texts() -> Dataset:
    """2,000 training stories."""
    return Dataset.from_dict({"text": [story.text for story in stories(0, 0, 2_000)]})


@pytest.fixture(scope="session")
def tokenizer(texts: Dataset) -> PreTrainedTokenizerFast:
    """A BPE of 1,000 tokens."""
    return train_story_tokenizer(texts)


@pytest.fixture(scope="session")
def rows(texts: Dataset, tokenizer: PreTrainedTokenizerFast) -> Dataset:
    """The first 200 stories' tokens."""
    return tokenize_stories(texts.select(range(200)), tokenizer).rows
