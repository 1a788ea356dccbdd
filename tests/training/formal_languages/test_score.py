"""The score: at which positions a model is right, and the mean over the test lengths."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hf_mech.languages import test_batch
from tests.training.formal_languages.small import outcome_of, run_of
from training.formal_languages.run import accuracy_at


class Oracle(nn.Module):
    """Says at every position the token that `say(input_ids)` returns."""

    def __init__(self, say: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.say, self.weight = say, nn.Parameter(torch.zeros(1))

    def forward(self, input_ids: Tensor) -> Any:
        return SimpleNamespace(logits=nn.functional.one_hot(self.say(input_ids), 32).float())


@pytest.mark.parametrize("task", ["reverse_string", "stack_manipulation"])
def test_alm_is_scored_on_the_next_true_symbol(task: str):
    run = run_of(task, "alm", test_samples=70)
    reads_ahead = Oracle(lambda ids: ids.roll(-1, 1))
    assert accuracy_at(reads_ahead, run, 9) == 1
    assert accuracy_at(Oracle(lambda ids: ids), run, 9) < 0.8


def test_mlm_is_scored_at_the_masks_that_count():
    run = run_of("stack_manipulation", "mlm", test_samples=70, test_seed=7)
    labels = test_batch("stack_manipulation", "mlm", seed=7, length=12, count=70)["labels"]
    said = 4
    expected = float((labels == said).sum() / (labels >= 0).sum())
    assert 0 < expected < 1
    assert accuracy_at(Oracle(lambda ids: torch.full_like(ids, said)), run, 12) == pytest.approx(expected)


def test_the_score_is_the_mean_over_the_test_lengths():
    run = run_of("stack_manipulation", "alm", max_train_length=8)
    by_length = {str(n): float(n > 40) / 2 + (n > 8) / 4 for n in range(1, 101)}
    outcome = outcome_of(run, accuracy_by_length=by_length)
    assert outcome.accuracy == 0.75
    assert outcome.trained_length_accuracy == 0
