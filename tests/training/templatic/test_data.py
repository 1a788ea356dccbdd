"""Batches: which prompts stand in which step, and how they are laid out for a model."""

from __future__ import annotations

import pickle

import datasets
import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.batches import Layout, TrainingBatches, batches_of_epoch
from tests.training.templatic.small import ENCODER_DECODERS, MODELS
from training.templatic.settings import KINDS


def test_an_epoch_has_every_prompt_once_by_length():
    lengths = np.random.default_rng(0).integers(5, 90, 1_003)
    batches = batches_of_epoch(lengths, 4, seed=1, epoch=2)
    assert batches.shape == (250, 4)
    assert len(np.unique(batches)) == 1_000
    assert np.array_equal(batches, batches_of_epoch(lengths, 4, seed=1, epoch=2))
    assert not np.array_equal(batches, batches_of_epoch(lengths, 4, seed=1, epoch=3))
    spread = np.ptp(lengths[batches], axis=1)
    assert spread.mean() < 5 < np.ptp(lengths[batches].reshape(-1), axis=0)  # little padding
    assert abs(np.corrcoef(lengths[batches].mean(1), np.arange(250))[0, 1]) < 0.2  # and no order in time
    with pytest.raises(ValueError, match=r"batch of 4 needs .* got 3"):
        batches_of_epoch(lengths[:3], 4, seed=0, epoch=0)


def test_fewer_prompts_than_a_batch_holds(tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]]):
    with pytest.raises(ProgramsError, match=r"batch of 61 needs .* got 60"):
        TrainingBatches(datasets.Dataset.from_dict(rows), Layout(tokenizer, "decoder"), 61, 0)


def test_the_rows_of_a_selection_are_its_own(tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]]):
    """A data set that was selected from keeps its whole table below; lengths and batches are of the selection."""
    longest = max(range(60), key=lambda row: len(rows["prompt"][row].split()))
    selected = datasets.Dataset.from_dict(rows).select([longest] * 4)
    batches = TrainingBatches(selected, Layout(tokenizer, "decoder"), 2, 0)
    words = [len(rows[name][longest].split()) for name in ("prompt", "completion")]
    assert batches.lengths.tolist() == [sum(words)] * 4
    assert set(batches.indices(1)) <= set(range(4))


@pytest.mark.parametrize("model", MODELS)
def test_only_the_completion_is_learned(tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]], model: str):
    """The labels are the completions with the end behind them, and nothing of the prompt."""
    batch = Layout(tokenizer, KINDS[model]).training({name: texts[:5] for name, texts in rows.items()})
    for row in range(5):
        labels = batch["labels"][row]
        assert tokenizer.decode(labels[labels != -100]) == f"{rows['completion'][row]} <eos>"
        text = tokenizer.decode(batch["input_ids"][row][batch["attention_mask"][row].bool()])
        if model in ENCODER_DECODERS:
            assert text == rows["prompt"][row]
        else:
            assert text == f"{rows['prompt'][row]} {rows['completion'][row]} <eos>"
            # The label of a column is that column's token; the model shifts them by one.
            kept = batch["input_ids"][row][-batch.get("logits_to_keep", 0) :]
            assert torch.equal(labels[labels != -100], kept[labels != -100])
            assert model != "mamba" or batch["attention_mask"][row, 0] == 1


def test_training_batches_go_to_other_processes(tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]]):
    """As a DataLoader's workers get them; and the same prompts stand in a step, however one comes to it."""
    batches = TrainingBatches(datasets.Dataset.from_dict(rows), Layout(tokenizer, "decoder"), 8, 0)
    again = pickle.loads(pickle.dumps(batches))
    for step in (30, 0, 6, 7, 14, 30):  # seven batches an epoch
        epoch, place = divmod(step, 7)
        expected = batches_of_epoch(batches.lengths, 8, 0, epoch)[place]
        assert again.indices(step).tolist() == batches.indices(step).tolist() == expected.tolist()
        assert torch.equal(again[step]["input_ids"], batches[step]["input_ids"])
