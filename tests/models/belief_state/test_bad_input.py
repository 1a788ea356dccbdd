"""What cannot be meant is refused by a typed error that says what to do."""

from __future__ import annotations

import pytest
import torch

from hf_mech.models.belief_state import (
    BeliefStateError,
)

from .models import VOCABULARY, model, tokens


def test_an_empty_prefix():
    with pytest.raises(BeliefStateError, match=r"input_ids has no column. Begin with bos_token_id"):
        model()(tokens(2, 0))
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    with pytest.raises(BeliefStateError, match="A row has an empty prefix"):
        model()(tokens(2, 3), mask)
    with pytest.raises(BeliefStateError, match="A row has an empty prefix"):
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
    with pytest.raises(BeliefStateError, match="A prefix has 33 positions, but its encoder has learned 32"):
        made(tokens(1, 33))
    with pytest.raises(BeliefStateError, match="A suffix has 33 positions, but its encoder has learned 32"):
        made(tokens(1, 3), suffix_ids=tokens(1, 32))
    with pytest.raises(BeliefStateError, match="A suffix has 33 positions"):
        made(tokens(1, 32), labels=tokens(1, 32))  # its end token is one more
    with pytest.raises(BeliefStateError, match="A prefix has 41 positions"):
        made(tokens(1, 2), position_ids=torch.tensor([[39, 40]]))
    with pytest.raises(BeliefStateError, match="A prefix has 33 positions"):
        made.generate(tokens(1, 30), max_new_tokens=10, min_new_tokens=10)


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
def test_tokens_outside_the_vocabulary(wrong: int):
    bad = tokens(2, 4)
    bad[1, 2] = wrong
    with pytest.raises(BeliefStateError, match=f"input_ids must be tokens from 0 to 19, got {wrong}"):
        model()(bad)
    with pytest.raises(BeliefStateError, match=f"suffix_ids must be tokens from 0 to 19, got {wrong}"):
        model()(tokens(2, 4), suffix_ids=bad)


def test_suffixes_that_do_not_fit():
    with pytest.raises(BeliefStateError, match="with 2 rows, one for each prefix"):
        model()(tokens(2, 4), suffix_ids=tokens(3, 4))
    with pytest.raises(BeliefStateError, match="without suffix_ids"):
        model()(tokens(2, 4), suffix_attention_mask=torch.ones(2, 4))
    with pytest.raises(BeliefStateError, match=r"suffix_attention_mask must be \[2, 4\]"):
        model()(tokens(2, 4), suffix_ids=tokens(2, 4), suffix_attention_mask=torch.ones(2, 5))


def test_labels_without_a_pair():
    with pytest.raises(BeliefStateError, match="No prefix and suffix to train on"):
        model()(tokens(2, 4), labels=torch.full((2, 4), -100))
    with pytest.raises(BeliefStateError, match="No prefix and suffix to train on"):
        model()(tokens(2, 1), labels=tokens(2, 1))


def test_labels_that_do_not_fit():
    batch = tokens(2, 5)
    with pytest.raises(BeliefStateError, match=r"labels must be \[2, 5\]"):
        model()(batch, labels=batch[:, 1:])
    with pytest.raises(BeliefStateError, match="Do not shift them"):
        model()(batch, labels=batch.roll(-1, 1))
    for other in (
        {"input_ids": batch, "suffix_ids": batch},
        {"inputs_embeds": torch.zeros(2, 5, 16, dtype=torch.float64)},
        {"input_ids": batch, "past_key_values": model()(batch).past_key_values},
    ):
        with pytest.raises(BeliefStateError, match="give whole sequences as input_ids"):
            model()(**other, labels=batch)


def test_tokens_that_are_no_whole_numbers():
    with pytest.raises(BeliefStateError, match=r"input_ids must be whole numbers.* got torch.float32"):
        model()(tokens(2, 4).float())
    with pytest.raises(BeliefStateError, match=r"suffix_ids must be whole numbers.* got torch.bool"):
        model()(tokens(2, 4), suffix_ids=tokens(2, 4) > 0)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (torch.ones(2, 5), r"must be \[2, 6\].*got \[2, 5\]"),
        (torch.ones(2, 7), r"must be \[2, 6\].*got \[2, 7\]"),
        (torch.ones(1, 6), r"must be \[2, 6\].*got \[1, 6\]"),
        (torch.ones(2, 6, 6), r"four-dimensional, got \[2, 6, 6\]"),
        (torch.full((2, 6), 0.5), "from 0.5 to 0.5"),
        (torch.tensor([[1, 1, 1, 2, 2, 2]] * 2), "from 1 to 2. For several sequences in a row give position_ids"),
    ],
)
def test_masks_that_do_not_fit(mask: torch.Tensor, said: str):
    """The numbers of packed sequences, as some collators give them, would shift the positions in silence."""
    with pytest.raises(BeliefStateError, match=said):
        model()(tokens(2, 6), mask)


def test_a_mask_has_the_tokens_of_the_cache_too():
    made = model()
    cache = made(tokens(2, 3)).past_key_values
    with pytest.raises(
        BeliefStateError, match=r"must be \[2, 4\], a number for each token, those of the cache included"
    ):
        made(tokens(2, 1), torch.ones(2, 1), past_key_values=cache)


@pytest.mark.parametrize("positions", [torch.arange(5)[None], torch.arange(6.0)[None], torch.arange(18).view(3, 6)])
def test_positions_that_do_not_fit(positions: torch.Tensor):
    with pytest.raises(BeliefStateError, match=r"position_ids must be whole numbers, \[2, 6\] as the tokens"):
        model()(tokens(2, 6), position_ids=positions)


@pytest.mark.parametrize("given", [{"suffix_ids": tokens(2, 3)}, {"labels": tokens(2, 6)}])
def test_a_suffix_state_beside_what_it_replaces(given: dict):
    with pytest.raises(BeliefStateError, match="in place of suffix_ids, and labels need none"):
        model()(tokens(2, 6), suffix_state=torch.zeros(2, 1, 16), **given)


def test_a_suffix_state_that_does_not_fit():
    with pytest.raises(BeliefStateError, match=r"must be \[2, 1, 16\] or \[1, 1, 16\].*got \[3, 1, 16\]"):
        model()(tokens(2, 6), suffix_state=torch.zeros(3, 1, 16))


def test_padding_within_a_sequence_is_not_trained():
    """Its gaps would be counted with the padding, and the pairs beside it would be lost."""
    batch, mask = tokens(2, 6), torch.tensor([[1, 1, 1, 0, 1, 1]] * 2)
    assert model()(batch, mask).logits.isfinite().all()
    with pytest.raises(BeliefStateError, match="padding within a sequence"):
        model()(batch, mask, labels=batch)


def test_a_part_of_a_batch_without_labels_trains_nothing():
    """Its gradients are accumulated with those of parts that have labels; the sum is that of the whole batch."""
    made, batch = model(), tokens(2, 6)
    labels = batch.clone()
    labels[1] = -100
    made(batch, labels=labels, num_items_in_batch=5).loss.backward()
    whole = {name: part.grad.clone() for name, part in made.named_parameters()}
    made.zero_grad()
    for row in range(2):
        made(batch[row : row + 1], labels=labels[row : row + 1], num_items_in_batch=5).loss.backward()
    for name, part in made.named_parameters():
        torch.testing.assert_close(part.grad, whole[name])
    with pytest.raises(BeliefStateError, match="No prefix and suffix"):  # none of the parts has labels
        made(batch[1:], labels=labels[1:], num_items_in_batch=0)


@pytest.mark.parametrize("name", ["goal_ids", "cu_seq_lens_q", "labls"])
def test_unknown_arguments(name: str):
    with pytest.raises(TypeError, match=name):
        model()(tokens(2, 4), **{name: torch.zeros(1)})
