"""Perplexity: the exponential of the mean loss over tokens, on the rows that every model is measured on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import load_from_disk
from transformers import AutoTokenizer, EvalPrediction

from training.engine import Job
from training.language_models.run import Score, _model, _perplexity, _trainer, data_folder
from training.language_models.settings import Run


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_perplexity_of_knowing_nothing_is_the_vocabulary(run: Run, job: Job, output_dir: Path, objective: str):
    run = replace(run, objective=objective)
    data = data_folder(output_dir, run.data)
    tokenizer = AutoTokenizer.from_pretrained(data / "tokenizer")
    splits = load_from_disk(data / "blocks").with_format("torch")
    model, _ = _model(run, job.folder, tokenizer, splits)
    trainer = _trainer(run, job, model, tokenizer, splits)
    of_new_weights = _perplexity(trainer, trainer.eval_dataset)
    assert of_new_weights != pytest.approx(len(tokenizer), rel=1e-4)
    with torch.no_grad():
        model.get_output_embeddings().weight.zero_()
    assert _perplexity(trainer, trainer.eval_dataset) == pytest.approx(len(tokenizer), rel=1e-6)


@pytest.mark.parametrize(("objective", "first"), [("clm", 1), ("mlm", 0)])
def test_the_mean_is_over_tokens(objective: str, first: int):
    logits, labels = torch.randn(3, 6, 5), torch.randint(5, (3, 6))
    labels[0, 2:], labels[1, 4] = -100, -100
    score = Score(objective)
    losses = score.token_losses(logits, labels)
    got = score.mean(EvalPrediction(losses.numpy(), labels.numpy()))["nll"]
    predicted = torch.log_softmax(logits, -1)
    expected = [
        -float(predicted[row, place - first, labels[row, place]])
        for row in range(3)
        for place in range(first, 6)
        if labels[row, place] >= 0
    ]
    assert got == pytest.approx(np.mean(expected), rel=1e-6)
