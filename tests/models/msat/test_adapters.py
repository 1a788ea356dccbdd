"""peft trains M-SAT with gradient checkpointing: gradients begin at the embeddings of steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import Trainer, TrainingArguments

from hf_mech.models.msat import MSATDecisionTransformer

from .models import config, steps


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")
@pytest.mark.parametrize("reentrant", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_trainer_takes_a_step_of_lora_with_gradient_checkpointing(reentrant: bool, tmp_path: Path):
    torch.manual_seed(0)
    model = MSATDecisionTransformer(config())
    model.enable_input_require_grads()  # as reentrant checkpointing under adapters needs of any model
    adapted = get_peft_model(model, LoraConfig(r=2, init_lora_weights=False, fan_in_fan_out=True))
    before = {name: weight.clone() for name, weight in adapted.named_parameters()}
    batch = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in steps(4, 3).items()}
    batch["labels"] = batch["actions"]
    arguments = TrainingArguments(
        str(tmp_path),
        max_steps=1,
        learning_rate=0.1,
        per_device_train_batch_size=4,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": reentrant},
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    rows = [{name: tensor[row] for name, tensor in batch.items()} for row in range(4)]
    Trainer(adapted, arguments, train_dataset=rows).train()
    changed = {name for name, weight in adapted.named_parameters() if not torch.equal(weight, before[name])}
    adapters = {name for name in before if "lora_" in name}
    assert len(adapters) >= 2 * model.config.n_layer
    assert changed == adapters


def test_the_embeddings_of_steps_can_be_got_and_set():
    model, other = MSATDecisionTransformer(config()), MSATDecisionTransformer(config())
    assert model.get_input_embeddings() is model.tokenizer
    model.set_input_embeddings(other.tokenizer)
    assert model.tokenizer is other.tokenizer
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    batch = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in steps(1, 3).items()}
    model.enable_input_require_grads()
    assert model(**batch).logits.requires_grad
    model.disable_input_require_grads()
    assert not model(**batch).logits.requires_grad
