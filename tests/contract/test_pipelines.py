"""Pipelines serve every model with a tokenizer as users have it, from a saved checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import pipeline

from .case import ContractCase
from .pipelines import options, request, tasks


@pytest.mark.feature("pipelines", says=tasks)
@pytest.mark.needs("pipeline")
def test_pipelines_give_a_text_the_same_answer_in_any_batch(case: ContractCase, tmp_path: Path):
    assert case.processing is not None
    assert len({len(text) for text in case.texts}) > 1  # so that a batch is padded
    config, tokenizer = case.processing()
    torch.manual_seed(0)
    case.model_class(config).double().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for task in tasks(case):
        run = pipeline(task, model=str(tmp_path), dtype=torch.float64)
        assert type(run.model) is case.model_class
        if task == "text-generation":
            run.tokenizer.padding_side = "left"
        requests = [request(task, text, tokenizer) for text in case.texts]
        alone = run(requests, batch_size=1, **options(task))
        together = run(requests, batch_size=len(requests), **options(task))
        assert len(alone) == len(together) == len(requests)
        same(alone, together, left=run.tokenizer.padding_side == "left")


def test_a_refused_task_is_refused_in_words(case: ContractCase, tmp_path: Path):
    assert set(case.refused_tasks) <= set(tasks(case, refused=True))
    assert all(reason.strip() for reason in case.refused_tasks.values())
    for task in case.refused_tasks:
        assert case.processing is not None
        config, tokenizer = case.processing()
        with pytest.raises(ValueError, match=r"\w"):
            pipeline(task, model=case.model_class(config), tokenizer=tokenizer)(case.texts[0])


def same(alone: Any, together: Any, left: bool) -> None:
    """Equal answers; numbers are equal up to rounding. Features of padding, which a batch has in addition, are cut."""
    if isinstance(alone, dict):
        assert alone.keys() == together.keys()
        for key in alone:
            same(alone[key], together[key], left)
    elif isinstance(alone, list) and alone and isinstance(alone[0], list | dict):
        assert len(together) >= len(alone)
        for one, other in zip(alone, together[-len(alone) :] if left else together, strict=False):
            same(one, other, left)
    elif isinstance(alone, str):
        assert alone == together
    else:
        assert_close(torch.tensor(together), torch.tensor(alone), rtol=1e-6, atol=1e-8, check_dtype=False)


@pytest.mark.lacking("pipeline")
def test_without_a_pipeline_no_task_asks_for_one(case: ContractCase):
    assert not tasks(case)
