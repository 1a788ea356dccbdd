"""transformers' Trainer trains M-SAT on episodes; of ours are the model, the data and the collator."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import Trainer, TrainingArguments, set_seed

from hf_mech.control.recording import record
from hf_mech.control.windows import ContextWindows, WindowCollator
from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer


@pytest.mark.slow
@pytest.mark.parametrize(
    "tokenization",
    ["single", "multi", "multi_state"],
)
def test_stock_trainer(tokenization: str, tmp_path: Path) -> None:
    rows = record("hf_mech/Rooms-v0", "expert", 4, frame_size=(36, 36), cache_dir=str(tmp_path / "data"))
    windows = ContextWindows(rows, context_length=5)
    set_seed(0)
    config = MSATDecisionTransformerConfig(
        action_tokenization=tokenization,
        action_sizes=[3, 3],
        state_shape=[3, 36, 36],
        context_length=5,
        n_layer=1,
        n_head=2,
        n_embd=32,
    )
    trainer = Trainer(
        MSATDecisionTransformer(config),
        TrainingArguments(
            output_dir=str(tmp_path / "out"),
            max_steps=30,
            per_device_train_batch_size=8,
            learning_rate=3e-3,
            report_to=[],
            dataloader_pin_memory=False,
            save_strategy="no",
            remove_unused_columns=False,
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=windows,
        eval_dataset=windows,
        data_collator=WindowCollator(context_length=5),
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < 0.8 * before
