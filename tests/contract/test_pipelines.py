"""transformers' pipelines serve every model with a tokenizer as users have it, from a saved checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import pipeline

from .case import ContractCase
from .pipelines import options, request, tasks
from .registry import AUTO_CLASSES, registered_models


@pytest.mark.feature("pipelines of transformers")
@pytest.mark.needs("pipeline")
def test_pipelines_give_one_answer_a_text_in_any_batch(case: ContractCase, tmp_path: Path):
    """A batch pads its texts. GPT-2's tokenizer has no padding token, and users then take the EOS."""
    assert case.processing is not None
    assert len({len(text) for text in case.texts}) > 1
    config, tokenizer = case.processing()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    torch.manual_seed(0)
    case.model_class(config).double().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = tasks(case)
    assert found, registered_models()[case.model_class]
    for task in found:
        run = pipeline(task, model=str(tmp_path), dtype=torch.float64)
        assert type(run.model) is case.model_class
        if task == "text-generation":
            run.tokenizer.padding_side = "left"
            run.generation_config.min_new_tokens = 1
        requests = [request(task, text, tokenizer) for text in case.texts]
        together = run(requests, batch_size=len(requests), **options(task))
        assert len(together) == len(requests)
        for one, answer in zip(requests, together, strict=True):
            same(run(one, **options(task)), answer)


def same(alone: Any, together: Any) -> None:
    """Equal answers; numbers are equal up to rounding. Features of padding, which a batch has in addition, are cut."""
    if isinstance(alone, dict):
        assert alone.keys() == together.keys()
        for key in alone:
            same(alone[key], together[key])
    elif isinstance(alone, list) and alone and isinstance(alone[0], list | dict):
        for left, right in zip(alone, together, strict=False):
            same(left, right)
    elif isinstance(alone, str):
        assert alone == together
    else:
        assert_close(torch.tensor(together), torch.tensor(alone), rtol=1e-6, atol=1e-8, check_dtype=False)


@pytest.mark.lacking("pipeline")
def test_without_a_pipeline_no_task_asks_for_one(case: ContractCase):
    """Tasks that an Auto class of the model serves, but `feature-extraction`, which takes any base model."""
    assert set(tasks(case)) <= {"feature-extraction"}
    assert set(registered_models()[case.model_class]) <= AUTO_CLASSES.keys()
