"""transformers' Trainer trains the Belief State Transformer on star graphs; of ours are the model and the data."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest
from transformers import Trainer, TrainingArguments, default_data_collator, set_seed

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM


@pytest.mark.slow
def test_stock_trainer_and_collator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    graphs = datasets.load_dataset("hf_mech/star_graph", "g-2-5", num_train=32, num_test=32)
    set_seed(0)
    config = BeliefStateConfig(
        **{"vocab_size": 56, "n_positions": 33, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_inner": 32},
        **{"head_width": 32, "eos_token_id": 54, "bos_token_id": None, "pad_token_id": 55},
    )
    trainer = Trainer(
        BeliefStateForCausalLM(config),
        TrainingArguments(
            output_dir=str(tmp_path / "out"),
            max_steps=30,
            per_device_train_batch_size=16,
            learning_rate=2e-2,
            gradient_accumulation_steps=2,
            report_to=[],
            dataloader_pin_memory=False,
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=graphs["train"],
        eval_dataset=graphs["train"],
        data_collator=default_data_collator,
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < 0.7 * before
