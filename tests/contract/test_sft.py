"""TRL's SFTTrainer trains every causal language model with a tokenizer as users have it, packed and not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from datasets import Dataset

from .case import ContractCase

# TRL computes the loss itself, from the last hidden states and the output embeddings.
NEEDS = ("generation", "packing", "output_embeddings", "pipeline")
pytestmark = [pytest.mark.needs(capability) for capability in NEEDS]


@pytest.mark.feature("TRL's `SFTTrainer`, packed and not")
# TRL knows only flash attention as exact for packed rows. Ours are exact with every attention: test_packing.
@pytest.mark.filterwarnings("ignore:.*flash.*:UserWarning")
# TRL 1.16 sets the option that transformers 5.23 deprecates.
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("packing", [pytest.param(False, marks=pytest.mark.slow), True])
def test_sft_lowers_the_loss(case: ContractCase, packing: bool, tmp_path: Path):
    from trl import SFTConfig, SFTTrainer

    assert case.processing is not None
    config, tokenizer = case.processing()
    torch.manual_seed(0)
    arguments = SFTConfig(
        str(tmp_path),
        max_steps=20,
        per_device_train_batch_size=4,
        learning_rate=case.learning_rate,
        packing=packing,
        max_length=24,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        dataloader_pin_memory=False,
    )
    data = Dataset.from_dict({"text": list(case.texts) * 20})
    run = SFTTrainer(case.model_class(config), arguments, train_dataset=data, processing_class=tokenizer)
    run.train()
    losses = [entry["loss"] for entry in run.state.log_history if "loss" in entry]
    assert len(losses) == 20
    assert losses[-1] < 0.9 * losses[0]
