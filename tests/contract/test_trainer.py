"""transformers' Trainer trains every model that has a loss, as exactly as it trains its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.modeling_utils import PreTrainedModel

from .batches import Batch, rows, stack
from .case import ContractCase
from .compare import named
from .test_save_load import assert_same

pytestmark = pytest.mark.needs("loss")


def examples(case: ContractCase, dtype: torch.dtype = torch.float32) -> list[Batch]:
    """Sixteen padded examples of four lengths."""
    lengths = (4, 6, 7, 9)
    batches = [
        case.pad(case.inputs(4, length, seed), max(lengths) - length, "right") for seed, length in enumerate(lengths)
    ]
    return rows({k: v.to(dtype) if v.is_floating_point() else v for k, v in stack(batches).items()})


def trainer(case: ContractCase, folder: Path, model: PreTrainedModel, **arguments: Any) -> Trainer:
    callbacks = arguments.pop("callbacks", None)
    settings: dict[str, Any] = {
        "max_steps": 30,
        "learning_rate": case.learning_rate,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 16,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        "seed": 1,
    }
    data = examples(case, model.dtype)
    return Trainer(
        model=model,
        args=TrainingArguments(output_dir=str(folder), **{**settings, **arguments}),
        train_dataset=data,
        eval_dataset=data,
        callbacks=callbacks,
    )


@pytest.mark.feature("`Trainer`")
def test_loss_falls(case: ContractCase, tmp_path: Path):
    run = trainer(case, tmp_path, case.model())
    assert run.label_names
    before = run.evaluate()["eval_loss"]
    run.train()
    after = run.evaluate()["eval_loss"]
    assert after < 0.9 * before


@pytest.mark.feature("gradient accumulation is exact")
def test_accumulation_is_exact(case: ContractCase, tmp_path: Path):
    """Batch 8 x 1 is batch 1 x 8. Plain gradient descent without clipping, which would hide a wrong scale."""

    def trained(batch: int, accumulation: int) -> PreTrainedModel:
        run = trainer(
            case,
            tmp_path,
            case.model().to(torch.float64),
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=accumulation,
            max_steps=2,
            optim="sgd",
            learning_rate=0.1,
            max_grad_norm=0.0,
        )
        run.train()
        assert isinstance(run.model, PreTrainedModel)
        return run.model

    start, whole, parts = case.model().to(torch.float64), trained(8, 1), trained(1, 8)
    for (name, first), second in zip(whole.named_parameters(), parts.parameters(), strict=True):
        assert_close(first, second, rtol=1e-9, atol=1e-11, msg=named(name))
    assert any(
        not torch.equal(ours, theirs) for ours, theirs in zip(whole.parameters(), start.parameters(), strict=True)
    )


class StopAfter(TrainerCallback):
    """Ends training early, as a kill right after a save does."""

    def __init__(self, step: int):
        self.step = step

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        control.should_training_stop = state.global_step >= self.step


@pytest.mark.feature("`resume_from_checkpoint` is bit-exact")
@pytest.mark.slow
def test_resume_is_bit_exact(case: ContractCase, tmp_path: Path):
    """Steps 1 and 2, and 3 and 4 by another Trainer and another model, are steps 1 to 4."""
    saving = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    whole = trainer(case, tmp_path / "whole", case.model(), **saving)
    whole.train()

    trainer(case, tmp_path / "cut", case.model(), callbacks=[StopAfter(2)], **saving).train()
    resumed = trainer(case, tmp_path / "cut", case.model(seed=5), **saving)
    resumed.train(resume_from_checkpoint=True)

    assert resumed.state.global_step == whole.state.global_step == 4
    assert isinstance(whole.model, PreTrainedModel)
    assert isinstance(resumed.model, PreTrainedModel)
    assert_same(whole.model, resumed.model)
