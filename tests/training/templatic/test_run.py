"""A run: its losses and scores, what counts as right, the prompts that are measured, the time limit, bfloat16."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import datasets
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from hf_mech.programs.templatic.batches import Layout, TrainingBatches, word_tokenizer
from hf_mech.programs.templatic.tasks import SPLITS
from tests.training.jobs import job_in
from tests.training.templatic.small import small
from training.templatic.experiment import EXPERIMENT
from training.templatic.run import RunOutcome, exact_matches, measured_rows, train_run
from training.templatic.settings import Run


def trained(run: Run, folder: Path) -> RunOutcome:
    outcome = train_run(run, job_in(folder, EXPERIMENT))
    assert outcome is not None
    return outcome


class Says(nn.Module):
    """Answers every prompt with the next of its answers."""

    def __init__(self, said: Tensor) -> None:
        super().__init__()
        self.said = said

    def generate(self, input_ids: Tensor, attention_mask: Tensor, max_new_tokens: int) -> Tensor:
        self.said, now = self.said[len(input_ids) :], self.said[: len(input_ids), : max_new_tokens + 1]
        return now


def test_a_completion_is_right_if_all_of_it_is():
    tokenizer = word_tokenizer(["Q", "A", "a", "b", "."])
    rows = datasets.Dataset.from_dict({"prompt": ["Q a A"] * 6, "completion": ["a b ."] * 5 + ["a X ."]})
    a, b, stop, eos, unknown = 6, 7, 8, 3, 1
    said = [[a, b, stop, eos], [a, b, stop, b], [b, b, stop, eos], [a, b, eos, 0], [a, stop, eos, 0]]
    model = Says(torch.tensor([[2, *answer] for answer in [*said, [a, unknown, stop, eos]]]))
    layout = Layout(tokenizer, "encoder_decoder")
    right = list(exact_matches(model, layout, rows, 6, torch.device("cpu")))
    assert right == [True, False, False, False, False, False]


def test_training_accuracy_is_of_prompts_that_were_trained_on():
    run, no_tokenizer = small(), cast(PreTrainedTokenizerFast, None)
    splits = datasets.load_dataset("hf_mech/templatic_generation", "1_shot_rlw", **run.data)
    assert list(splits) == list(SPLITS)
    batches = TrainingBatches(splits["train"], Layout(no_tokenizer, "encoder_decoder"), 4, 0)
    seen = {row for step in range(3) for row in batches.indices(step).tolist()}
    chosen = measured_rows(replace(run, eval_prompts=0), splits, batches, 3)
    assert [splits["train"][i] for i in sorted(seen)] == chosen["train"].to_list()
    assert {split: len(rows) for split, rows in chosen.items()} == dict.fromkeys(SPLITS, 8) | {"train": 12}
    few = measured_rows(run, splits, batches, 3)
    assert {len(rows) for rows in few.values()} == {3}
    assert few["test"].to_list() == measured_rows(replace(run, model="cnn"), splits, batches, 9)["test"].to_list()
    assert few["test"].to_list() != measured_rows(replace(run, eval_seed=1), splits, batches, 3)["test"].to_list()


@pytest.mark.parametrize("model", ["nano_gpt", "lstm_attn"])
def test_the_loss_falls_and_every_split_is_measured(tmp_path: Path, model: str):
    outcome = trained(small(model, dropout=0.2), tmp_path)
    assert outcome.steps == 12
    assert outcome.losses[-1] < outcome.losses[0]
    assert set(outcome.exact_match) == set(SPLITS)
    assert outcome.training_prompts == 200


def test_a_time_limit_ends_the_training_and_not_the_run(tmp_path: Path):
    run = small(steps=100_000, max_minutes=0.004)
    outcome = trained(run, tmp_path)
    assert 0 < outcome.steps < 100_000
    assert outcome.seconds < 30
    assert outcome.measured["test"] == 3
    assert "max_minutes=0.004" in run.name


def test_bfloat16(tmp_path: Path):
    outcome = trained(small("nano_gpt_attn_only", mixed_precision="bf16"), tmp_path)
    assert outcome.losses[-1] < outcome.losses[0]
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}  # the arithmetic is bf16, the weights not
