"""The weights of pairs: they depend on prefix and suffix alone, and add up to the number of trained tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from hf_mech.models.belief_state import BeliefStateError
from hf_mech.models.belief_state.belief_state_pairs import Sequences
from tests.models.belief_state.models import END, PAD, model, tokens


def one(length: int, prompt: int = 1, last: bool = True) -> Sequences:
    """A sequence of `length` tokens, the end token among them, whose first `prompt` tokens are untrained."""
    trained = torch.arange(length)[None] >= prompt
    trained[:, -1] &= last
    return Sequences(torch.arange(length)[None], trained, torch.zeros(1, length, dtype=torch.long), length - 1)


@pytest.mark.parametrize("gap", [1, 2])
def test_every_gap_weighs_one(gap: int):
    made = one(9, prompt=3)
    weights = made.weights(gap, "gap")[0]
    found = [weights.diagonal(k) for k in made.gaps(gap)]
    for diagonal in filter(torch.any, found):
        assert_close(diagonal.sum().item(), 1.0)
        assert len(diagonal[diagonal > 0].unique()) == 1
    assert sum(bool(diagonal.any()) for diagonal in found) == (6 if gap == 1 else 5)


@settings(max_examples=25)
@given(texts=st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=6), min_size=2, max_size=20))
@pytest.mark.parametrize("gap", [1, 2])
def test_equal_prefixes_and_suffixes_weigh_alike_in_every_text(gap: int, texts: list[list[int]]):
    """So a label's share of the weight is its probability, given the prefix and the suffix (Eq. 3 and 4)."""
    found: dict[tuple[tuple[int, ...], ...], float] = {}
    for text in texts:
        text = [*text, END]
        made = one(len(text))
        weights = made.weights(gap, "gap")[0].tolist()
        for i, j in made.weights(gap)[0].nonzero().tolist():
            assert found.setdefault((tuple(text[: i + 1]), tuple(text[j:])), weights[i][j]) == weights[i][j]


@pytest.mark.parametrize("prompt", [1, 4])
@pytest.mark.parametrize(
    ("gap", "last", "kind", "more"),
    [
        (1, True, "sequence", 0.0),
        (2, True, "sequence", 0.0),
        (2, False, "sequence", 0.0),
        (1, True, "gap", 0.0),
        (2, False, "gap", 0.0),
        (2, True, "gap", -1.0),  # the end token is no label at gap 2
        (1, False, "gap", None),  # all prefixes that meet a suffix weigh 1 / (n + 1)
    ],
)
def test_the_total_weight_is_the_number_of_trained_tokens(prompt: int, gap: int, last: bool, kind: Any, more: Any):
    made = one(11, prompt, last)
    n = int(made.trained.sum())
    assert_close(made.weights(gap, kind).sum().item(), n + (n / (n + 1) if more is None else more))


def training(kind: str = "gpt2", **options: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """Texts of 4 to 7 tokens with their end tokens, as stock collators pad them."""
    ids, mask = tokens(4, 8), torch.tensor([[1] * n + [0] * (8 - n) for n in (5, 6, 7, 8)])
    ids[torch.arange(4), mask.sum(1) - 1] = END
    ids[mask == 0] = PAD
    labels = ids.masked_fill(mask == 0, -100)
    return model(kind, **options), {"input_ids": ids, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize("options", [{"least_gap": 1}, {"least_gap": 2}, {"least_gap": 1, "pair_weights": "sequence"}])
def test_a_batch_is_its_rows_for_trainer(options: dict[str, Any]):
    """`num_items_in_batch` as Trainer counts it: the sum over rows is the batch, and the same as without it."""
    made, batch = training(**options)
    items = int((batch["labels"][:, 1:] != -100).sum())
    whole = made(**batch, num_items_in_batch=items).loss
    assert_close(whole, made(**batch).loss)
    assert_close(
        whole, sum(made(**{k: v[n : n + 1] for k, v in batch.items()}, num_items_in_batch=items).loss for n in range(4))
    )


def test_the_default_follows_the_least_gap():
    for gap, kind in ((1, "gap"), (2, "sequence")):
        made, batch = training(least_gap=gap)
        assert made.config.pair_weights is None
        assert made.config.weights_of_pairs == kind
        loss = made(**batch).loss
        assert loss == training(least_gap=gap, pair_weights=kind)[0](**batch).loss
        other = {"gap": "sequence", "sequence": "gap"}[kind]
        assert loss != training(least_gap=gap, pair_weights=other)[0](**batch).loss


def test_random_pairs_in_training_and_all_in_evaluation():
    made, batch = training(pairs_per_sequence=2)
    every = training()[0](**batch).loss
    assert made.eval()(**batch).loss == every
    made.train()
    torch.manual_seed(0)
    drawn = torch.stack([made(**batch).loss.detach() for _ in range(40)])
    assert len(drawn.unique()) > 20
    assert abs(drawn.mean() - every) < 3 * drawn.std() / 40**0.5
    made.config.pairs_per_sequence = 1000
    assert_close(made(**batch).loss, every)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"pair_weights": "token"}, "pair_weights must be .*'sequence', 'gap'.* got 'token'"),
        ({"pairs_per_sequence": 0}, "pairs_per_sequence must be at least 1, got 0"),
    ],
)
def test_refuses(options: dict[str, Any], text: str):
    with pytest.raises(BeliefStateError, match=text):
        model(**options)
