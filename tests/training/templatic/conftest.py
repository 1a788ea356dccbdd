"""Prompts, their tokenizer, and a folder of its own for the data sets."""

from __future__ import annotations

from collections.abc import Iterator

import datasets
import pytest
from transformers import PreTrainedTokenizerFast

from hf_mech.programs.templatic.batches import word_tokenizer, words_of
from hf_mech.programs.templatic.grammar import generate


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The data sets of a module's tests go to a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
        yield


@pytest.fixture(scope="session")
def rows() -> dict[str, list[str]]:
    """Prompts of many lengths, and their completions."""
    examples = list(generate("1_shot_rlw", "train", seed=3, stop=60))
    return {"prompt": [e.prompt for e in examples], "completion": [e.completion for e in examples]}


@pytest.fixture(scope="session")
def tokenizer(rows: dict[str, list[str]]) -> PreTrainedTokenizerFast:
    return word_tokenizer(words_of(rows["prompt"] + rows["completion"]))
