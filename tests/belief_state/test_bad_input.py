"""What cannot be meant is refused by a typed error that says what to do."""

from __future__ import annotations

import pytest
import torch

from hf_mech.models.belief_state import (
    BeliefStateError,
    LengthError,
    PairError,
    PrefixError,
    SuffixError,
    VocabularyError,
)

from .models import VOCABULARY, model, tokens


def test_an_empty_prefix():
    with pytest.raises(PrefixError, match=r"input_ids has no column. Begin with bos_token_id"):
        model()(tokens(2, 0))
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    with pytest.raises(PrefixError, match="A row has an empty prefix"):
        model()(tokens(2, 3), mask)
    with pytest.raises(PrefixError, match="A row has an empty prefix"):
        model()(tokens(2, 3), mask, labels=tokens(2, 3))


def test_neither_tokens_nor_embeddings():
    with pytest.raises(BeliefStateError, match="either input_ids or inputs_embeds"):
        model()()
    with pytest.raises(BeliefStateError, match=r"input_ids must be \[batch, length\]"):
        model()(torch.tensor([1, 2, 3]))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_prefix_and_suffix_have_their_own_positions(kind: str):
    """GPT-2 here has 32 positions: 32 tokens of prefix and 31 of suffix with its end token fit together, no more."""
    made = model(kind)
    made(tokens(1, 32), suffix_ids=tokens(1, 31))
    if kind == "llama":
        made(tokens(1, 70), suffix_ids=tokens(1, 70))
        return
    with pytest.raises(LengthError, match="A prefix has 33 positions, but its encoder has learned 32"):
        made(tokens(1, 33))
    with pytest.raises(LengthError, match="A suffix has 33 positions, but its encoder has learned 32"):
        made(tokens(1, 3), suffix_ids=tokens(1, 32))
    with pytest.raises(LengthError, match="A suffix has 33 positions"):
        made(tokens(1, 32), labels=tokens(1, 32))  # its end token is one more
    with pytest.raises(LengthError, match="A prefix has 41 positions"):
        made(tokens(1, 2), position_ids=torch.tensor([[39, 40]]))
    with pytest.raises(LengthError, match="A prefix has 33 positions"):
        made.generate(tokens(1, 30), max_new_tokens=10, min_new_tokens=10)


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
def test_tokens_outside_the_vocabulary(wrong: int):
    bad = tokens(2, 4)
    bad[1, 2] = wrong
    with pytest.raises(VocabularyError, match=f"input_ids must be tokens from 0 to 19, got {wrong}"):
        model()(bad)
    with pytest.raises(VocabularyError, match=f"suffix_ids must be tokens from 0 to 19, got {wrong}"):
        model()(tokens(2, 4), suffix_ids=bad)


def test_suffixes_that_do_not_fit():
    with pytest.raises(SuffixError, match="with 2 rows, one for each prefix"):
        model()(tokens(2, 4), suffix_ids=tokens(3, 4))
    with pytest.raises(SuffixError, match="without suffix_ids"):
        model()(tokens(2, 4), suffix_attention_mask=torch.ones(2, 4))
    with pytest.raises(PairError, match=r"suffix_attention_mask must be \[2, 4\]"):
        model()(tokens(2, 4), suffix_ids=tokens(2, 4), suffix_attention_mask=torch.ones(2, 5))


def test_labels_without_a_pair():
    with pytest.raises(PairError, match="No prefix and suffix to train on"):
        model()(tokens(2, 4), labels=torch.full((2, 4), -100))
    with pytest.raises(PairError, match="No prefix and suffix to train on"):
        model()(tokens(2, 1), labels=tokens(2, 1))


def test_labels_that_do_not_fit():
    batch = tokens(2, 5)
    with pytest.raises(PairError, match=r"labels must be \[2, 5\]"):
        model()(batch, labels=batch[:, 1:])
    with pytest.raises(PairError, match="Do not shift them"):
        model()(batch, labels=batch.roll(-1, 1))
    for other in (
        {"input_ids": batch, "suffix_ids": batch},
        {"inputs_embeds": torch.zeros(2, 5, 16, dtype=torch.float64)},
        {"input_ids": batch, "past_key_values": model()(batch).past_key_values},
    ):
        with pytest.raises(PairError, match="give whole sequences as input_ids"):
            model()(**other, labels=batch)


@pytest.mark.parametrize("name", ["goal_ids", "cu_seq_lens_q", "labls"])
def test_unknown_arguments(name: str):
    with pytest.raises(TypeError, match=name):
        model()(tokens(2, 4), **{name: torch.zeros(1)})
