"""Habits of transformers and peft that would train the wrong thing in silence: done right, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel, AutoModelForCausalLM, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.utils import logging

from hf_mech.models.belief_state import BeliefStateError, BeliefStateForCausalLM

from .models import encoders, model, tokens

PEFT = [  # as in the contract suite
    "ignore:fan_in_fan_out is set to False:UserWarning",
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning",
]


def said(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(record.getMessage() for record in caplog.records)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Any:
    """The log of transformers and of this family, which do not reach pytest by themselves."""
    loggers = [
        logging.get_logger(name) for name in ("transformers", "hf_mech.models.belief_state.belief_state_encoders")
    ]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    yield caplog
    for logger in loggers:
        logger.removeHandler(caplog.handler)


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    GPT2LMHeadModel(encoders()["gpt2"]).save_pretrained(tmp_path / "stock")
    return tmp_path / "stock"


@pytest.mark.parametrize("given", [{"label_smoothing_factor": 0.1}, {}])
def test_losses_of_trainers_own_are_refused(given: dict[str, Any], tmp_path: Path):
    arguments = TrainingArguments(str(tmp_path), max_steps=1, report_to="none", use_cpu=True, **given)
    rows = [{"input_ids": row, "labels": row} for row in tokens(4, 6).tolist()]
    loss = None if given else lambda outputs, labels, num_items_in_batch=None: outputs.logits.mean()
    trainer = Trainer(model().float(), arguments, train_dataset=rows, compute_loss_func=loss)  # type: ignore[arg-type]
    with pytest.raises(BeliefStateError, match="label_smoothing_factor or compute_loss_func"):
        trainer.train()


def test_a_text_without_room_for_its_end_token_is_named():
    whole = tokens(1, 32)
    with pytest.raises(BeliefStateError, match=r"the whole text and its end token are a suffix\. Cut the suffix"):
        model()(whole, labels=whole)
    assert model()(whole[:, 1:], labels=whole[:, 1:]).loss.isfinite()


def test_the_base_model_loads_without_a_report(logged: pytest.LogCaptureFixture, tmp_path: Path):
    model().save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert "UNEXPECTED" not in said(logged)
    assert_close(loaded.encode(tokens(2, 5)), model().encode(tokens(2, 5)))


def test_stock_encoders_take_a_dtype(stock: Path):
    for dtype in ("bfloat16", torch.bfloat16):
        made = BeliefStateForCausalLM.from_encoder_pretrained(stock, stock, dtype=dtype)
        assert {parameter.dtype for parameter in made.parameters()} == {torch.bfloat16}
    assert BeliefStateForCausalLM.from_encoder_pretrained(stock).dtype == torch.float32


@pytest.mark.filterwarnings(*PEFT)
def test_an_adapter_trains_and_saves_a_new_text_head(stock: Path, tmp_path: Path):
    from peft import LoraConfig, PeftModel, get_peft_model

    ids = tokens(2, 6)
    adapted = get_peft_model(BeliefStateForCausalLM.from_encoder_pretrained(stock, stock, head_width=24), LoraConfig())
    adapted(ids, labels=ids).loss.backward()
    trained = [name for name, parameter in adapted.named_parameters() if parameter.requires_grad]
    assert any("text_head" in name for name in trained)
    assert all(adapted.get_parameter(name).grad is not None for name in trained)
    adapted.save_pretrained(tmp_path / "adapter")
    anew = BeliefStateForCausalLM.from_encoder_pretrained(stock, stock, head_width=24)
    loaded = PeftModel.from_pretrained(anew, tmp_path / "adapter")
    assert_close(loaded.eval()(ids, suffix_ids=ids).logits, adapted.eval()(ids, suffix_ids=ids).logits)
    assert adapted.merge_and_unload().generate(ids, max_new_tokens=1, pad_token_id=0).shape == (2, 7)


@pytest.mark.filterwarnings(*PEFT)
def test_the_head_of_a_checkpoint_stays_frozen(tmp_path: Path):
    from peft import LoraConfig, get_peft_model

    model().save_pretrained(tmp_path)
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(tmp_path), LoraConfig())
    assert all("lora_" in name for name, parameter in adapted.named_parameters() if parameter.requires_grad)


@pytest.mark.filterwarnings(*PEFT)
def test_adapters_warn_of_new_parts_that_they_do_not_train(logged: pytest.LogCaptureFixture, stock: Path):
    from peft import LoraConfig, get_peft_model

    get_peft_model(BeliefStateForCausalLM.from_encoder_pretrained(stock, stock), LoraConfig())
    assert "newly initialised" not in said(logged)
    get_peft_model(BeliefStateForCausalLM.from_encoder_pretrained(stock), LoraConfig())
    assert "The backward encoder is newly initialised" in said(logged)
    both = LoraConfig(modules_to_save=["text_head", "backward_encoder"])
    logged.clear()
    adapted = get_peft_model(BeliefStateForCausalLM.from_encoder_pretrained(stock), both)
    assert "newly initialised" not in said(logged)
    assert any("backward_encoder" in name for name, p in adapted.named_parameters() if p.requires_grad)
    get_peft_model(BeliefStateForCausalLM.from_encoder_pretrained(stock, stock), LoraConfig(target_modules=["next"]))
    assert "the adapter saves only its change to it" in said(logged)
