"""LoRA with peft's defaults trains the stacks and saves them with the adapter."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from torch.testing import assert_close
from transformers.dynamic_module_utils import get_imports

import hf_mech.models.stack
from hf_mech.models.stack import (
    StackGPT2ForCausalLM,
    StackGPT2ForTokenClassification,
    StackRobertaForMaskedLM,
    StackRobertaForQuestionAnswering,
    StackRobertaForSequenceClassification,
)

from .contract import predicting_tokens
from .stock import STOCK, TEXT, logits_of, new, stock_model, with_tokenizer

pytestmark = [
    # GPT-2's own layers store their matrix transposed, ours do not; peft sees that, and says so.
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning"),
    # peft 0.21 reads the attribute under the name that transformers 5.23 deprecates.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]

TASKS = [
    (StackGPT2ForCausalLM, "CAUSAL_LM"),
    (StackGPT2ForTokenClassification, "TOKEN_CLS"),
    (StackRobertaForMaskedLM, None),
    (StackRobertaForQuestionAnswering, "QUESTION_ANS"),
    (StackRobertaForSequenceClassification, "SEQ_CLS"),
]
HEADS_THAT_PEFT_SAVES = {
    "SEQ_CLS": ("classifier", "score"),
    "TOKEN_CLS": ("classifier", "score"),
    "QUESTION_ANS": ("qa_outputs",),
}
ACTION = ("action.weight", "action.bias")
tasks = pytest.mark.parametrize(
    ("ours", "task"),
    [*TASKS[1:3], *(pytest.param(*task, marks=pytest.mark.slow) for task in (TASKS[0], *TASKS[3:]))],
    ids=lambda value: getattr(value, "__name__", str(value)),
)


def stock_checkpoint(ours: Any, folder: Path) -> Path:
    stock_model(ours).save_pretrained(folder)
    return folder


def trained(adapted: Any, batch: dict[str, torch.Tensor]) -> Any:
    """The adapter after five steps; every parameter that it trains has changed."""
    weights = {name: weight for name, weight in adapted.named_parameters() if weight.requires_grad}
    before = {name: weight.detach().clone() for name, weight in weights.items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=1e-2)
    adapted.train()
    for _ in range(5):
        optimizer.zero_grad()
        adapted(**batch).loss.backward()
        optimizer.step()
    unchanged = [name for name, weight in weights.items() if torch.equal(weight, before[name])]
    assert all("encoder.layer.1.stack" in name for name in unchanged), unchanged  # see READS_POSITION_0
    return adapted.eval()


def in_training(adapted: Any) -> set[str]:
    """The last names of the modules that hold trained parameters of the stacks."""
    return {
        name.rpartition(".stack.")[2]
        for name, weight in adapted.named_parameters()
        if weight.requires_grad and ".stack." in name
    }


def assert_same_outputs(first: Any, second: Any, batch: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for logits, wanted in zip(logits_of(first(**batch)), logits_of(second(**batch)), strict=True):
            assert torch.equal(logits, wanted)


@tasks
def test_defaults_train_and_save_the_stacks(ours: Any, task: str | None, tmp_path: Path):
    """Loaded onto the stock checkpoint, whose stacks are then others, the adapter has the same logits."""
    stock, batch = stock_checkpoint(ours, tmp_path / "stock"), STOCK[ours][1](4, 8, 0)
    config = LoraConfig(task_type=task)
    adapted = get_peft_model(ours.from_pretrained(stock, stack_gate=True), config)
    assert {*config.modules_to_save} == {"stack", *HEADS_THAT_PEFT_SAVES.get(task, ())}
    assert in_training(adapted) == {f"modules_to_save.default.{name}" for name in ("gate", *ACTION)}
    trained(adapted, batch).save_pretrained(tmp_path / "adapter")

    torch.manual_seed(99)
    base = ours.from_pretrained(stock, stack_gate=True).eval()
    untrained, wanted = logits_of(base(**batch)), logits_of(adapted(**batch))
    assert not any(torch.equal(*pair) for pair in zip(untrained, wanted, strict=True))
    assert_same_outputs(PeftModel.from_pretrained(base, tmp_path / "adapter"), adapted, batch)

    torch.manual_seed(98)
    base = ours.from_pretrained(stock, stack_gate=True).eval()
    base.load_adapter(str(tmp_path / "adapter"))  # transformers' way
    assert_same_outputs(base, adapted, batch)


RELOAD = """
import sys
from pathlib import Path

import torch
from hf_mech.models.stack import StackGPT2ForCausalLM

assert "peft" not in sys.modules  # neither by hf_mech nor by the model
model = StackGPT2ForCausalLM.from_pretrained("stock", stack_gate=True).eval()
assert "peft" not in sys.modules
from peft import LoraConfig, PeftModel, get_peft_model

again = get_peft_model(StackGPT2ForCausalLM.from_pretrained("stock"), LoraConfig())
assert again.peft_config["default"].modules_to_save == ["stack"]  # peft was imported after the model
with torch.no_grad():
    torch.save(PeftModel.from_pretrained(model, "adapter")(torch.load("ids.pt")).logits, "logits.pt")
"""


@pytest.mark.slow
def test_another_process_has_the_same_logits(tmp_path: Path):
    stock, batch = stock_checkpoint(StackGPT2ForCausalLM, tmp_path / "stock"), predicting_tokens(4, 8, 0)
    model = StackGPT2ForCausalLM.from_pretrained(stock, stack_gate=True)
    adapted = trained(get_peft_model(model, LoraConfig(task_type="CAUSAL_LM")), batch)
    adapted.save_pretrained(tmp_path / "adapter")
    torch.save(batch["input_ids"], tmp_path / "ids.pt")
    run(RELOAD, tmp_path)
    with torch.no_grad():
        assert torch.equal(torch.load(tmp_path / "logits.pt"), adapted(batch["input_ids"]).logits)


STRANGER = """
import sys
sys.modules["hf_mech"] = None
from peft import LoraConfig, get_peft_model  # before the model: its code declares the targets when a model is made
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("checkpoint", trust_remote_code=True)
assert type(model).__module__.startswith("transformers_modules")
adapted = get_peft_model(model, LoraConfig())
assert adapted.peft_config["default"].modules_to_save == ["stack"]
assert any(weight.requires_grad and ".stack." in name for name, weight in adapted.named_parameters())
"""


@pytest.mark.slow
def test_without_the_package_defaults_train_the_stacks_too(tmp_path: Path):
    new(StackGPT2ForCausalLM).save_pretrained(tmp_path / "checkpoint")
    run(STRANGER, tmp_path)


def test_the_code_of_a_checkpoint_does_not_need_peft():
    for file in Path(next(iter(hf_mech.models.stack.__path__))).glob("*.py"):
        assert "peft" not in get_imports(file), file.name


def run(program: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_own_targets_and_modules_keep_the_stacks():
    config = LoraConfig(target_modules=["c_attn", "c_proj"], modules_to_save=["ln_f"])
    adapted = get_peft_model(new(StackGPT2ForCausalLM), config)
    assert config.modules_to_save == ["ln_f", "stack"]
    assert in_training(adapted) == {f"modules_to_save.default.{name}" for name in ACTION}


def test_an_encoding_with_weights_is_saved_too(tmp_path: Path):
    stock, batch = stock_checkpoint(StackRobertaForMaskedLM, tmp_path / "stock"), predicting_tokens(4, 8, 0)

    def made() -> Any:
        return StackRobertaForMaskedLM.from_pretrained(stock, position_embedding_type="relative").eval()

    config = LoraConfig()
    adapted = trained(get_peft_model(made(), config), batch)
    assert config.modules_to_save == ["stack", "encoding"]
    adapted.save_pretrained(tmp_path / "adapter")
    assert_same_outputs(PeftModel.from_pretrained(made(), tmp_path / "adapter"), adapted, batch)


def test_without_stacks_nothing_is_added():
    config = LoraConfig()
    get_peft_model(new(StackGPT2ForCausalLM, use_stack=False), config)
    assert config.modules_to_save is None


def test_every_method_of_peft_has_the_defaults_of_the_stock_model():
    adapted = get_peft_model(new(StackGPT2ForCausalLM), IA3Config())
    assert in_training(adapted) == {f"modules_to_save.default.{name}" for name in ACTION}
    assert any("ia3_" in name for name, weight in adapted.named_parameters() if weight.requires_grad)


# peft says so of every second adapter, also of stock models.
@pytest.mark.filterwarnings("ignore:Already found a `peft_config` attribute:UserWarning")
def test_every_adapter_of_transformers_has_stacks_of_its_own():
    model, batch = new(StackGPT2ForCausalLM), predicting_tokens(4, 8, 0)
    for name in ("first", "second"):
        model.add_adapter(LoraConfig(), name)
    assert {config.modules_to_save[0] for config in model.peft_config.values()} == {"stack"}
    model.set_adapter("first")
    first = trained(model, batch)(**batch).logits
    model.set_adapter("second")
    assert not torch.allclose(model(**batch).logits, first)
    model.set_adapter("first")
    assert torch.equal(model(**batch).logits, first)


def test_an_adapter_without_stacks_is_loaded_as_it_is(tmp_path: Path):
    """One of earlier versions, say: loading for inference adds nothing that its file lacks."""
    new(StackGPT2ForCausalLM).save_pretrained(tmp_path / "model")
    adapted = get_peft_model(
        StackGPT2ForCausalLM.from_pretrained(tmp_path / "model"), LoraConfig(target_modules=["action"])
    )
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = PeftModel.from_pretrained(
        StackGPT2ForCausalLM.from_pretrained(tmp_path / "model"), tmp_path / "adapter"
    ).eval()
    assert loaded.peft_config["default"].modules_to_save is None
    assert_same_outputs(loaded, adapted.eval(), predicting_tokens(4, 8, 0))


def test_merging_leaves_a_model_without_adapters():
    model, batch = new(StackGPT2ForCausalLM), predicting_tokens(4, 8, 0)
    assert not hasattr(model, "peft_config")
    adapted = trained(get_peft_model(model, LoraConfig()), batch)
    expected = adapted(**batch).logits
    merged = adapted.merge_and_unload()
    assert type(merged) is StackGPT2ForCausalLM
    assert not hasattr(merged, "peft_config")
    assert_close(merged(**batch).logits, expected, rtol=1e-4, atol=1e-5)
    assert all(".modules_to_save." not in name for name, _ in merged.named_parameters())


# ------------------------------------------------------------------------------------- targets inside the stacks


def warnings_of(caplog: pytest.LogCaptureFixture, model: Any, config: LoraConfig) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        get_peft_model(model, config)
    return [record.getMessage() for record in caplog.records if "stack_pretrained" in record.name]


def test_a_zero_gate_that_stays_frozen_is_warned_of(caplog: pytest.LogCaptureFixture):
    everywhere = LoraConfig(target_modules="all-linear")
    (message,) = warnings_of(caplog, new(StackGPT2ForCausalLM, stack_gate=True), everywhere)
    assert "gates of the stacks are zero and frozen" in message
    assert "modules_to_save=['stack']" in message
    cured = LoraConfig(target_modules="all-linear", modules_to_save=["stack"])
    assert not warnings_of(caplog, new(StackGPT2ForCausalLM, stack_gate=True), cured)
    assert not warnings_of(caplog, new(StackGPT2ForCausalLM, stack_gate=True), LoraConfig())


def test_new_stacks_that_are_not_saved_are_warned_of(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    stock = stock_checkpoint(StackGPT2ForCausalLM, tmp_path / "stock")
    for model in (new(StackGPT2ForCausalLM), StackGPT2ForCausalLM.from_pretrained(stock)):
        (message,) = warnings_of(caplog, model, LoraConfig(target_modules=["action"]))
        assert "newly initialised" in message
        assert "modules_to_save=['stack']" in message
    new(StackGPT2ForCausalLM).save_pretrained(tmp_path / "ours")
    model = StackGPT2ForCausalLM.from_pretrained(tmp_path / "ours")
    assert not warnings_of(caplog, model, LoraConfig(target_modules=["action"]))  # its checkpoint has the stacks


def test_the_cure_of_the_warning_saves_the_stacks(tmp_path: Path):
    stock, batch = stock_checkpoint(StackGPT2ForCausalLM, tmp_path / "stock"), predicting_tokens(4, 8, 0)
    config = LoraConfig(target_modules="all-linear", modules_to_save=["stack"])
    adapted = trained(get_peft_model(StackGPT2ForCausalLM.from_pretrained(stock), config), batch)
    adapted.save_pretrained(tmp_path / "adapter")
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["modules_to_save"] == ["stack"]
    base = StackGPT2ForCausalLM.from_pretrained(stock).eval()
    assert_same_outputs(PeftModel.from_pretrained(base, tmp_path / "adapter"), adapted, batch)


# ------------------------------------------------------------------------------------------------------ TRL


# trl 1.16 passes on its option under the name that transformers 5.23 deprecates.
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing` is deprecated:FutureWarning")
def test_supervised_fine_tuning_with_trl_trains_the_stacks(stock_tokenizers: dict[str, Any], tmp_path: Path):
    """A stock GPT-2 tokenizer and checkpoint, `LoraConfig()`, SFTTrainer; the saved adapter has the trained logits."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    model, tokenizer = with_tokenizer(StackGPT2ForCausalLM, stock_tokenizers, tmp_path / "stock")
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=4,
            learning_rate=1e-2,
            per_device_train_batch_size=2,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=Dataset.from_dict({"text": [tokenizer.bos_token + text for text in TEXT * 4]}),
        processing_class=tokenizer,
        peft_config=LoraConfig(),
    )
    assert in_training(trainer.model) == {f"modules_to_save.default.{name}" for name in ACTION}
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    changed = {name for name, weight in trainer.model.named_parameters() if not torch.equal(weight, before[name])}
    assert changed == {name for name, weight in trainer.model.named_parameters() if weight.requires_grad}
    trainer.save_model(str(tmp_path / "adapter"))
    base = StackGPT2ForCausalLM.from_pretrained(tmp_path / "stock").eval()
    batch = dict(tokenizer(tokenizer.bos_token + TEXT[0], return_tensors="pt"))
    assert_same_outputs(PeftModel.from_pretrained(base, tmp_path / "adapter"), trainer.model.eval(), batch)
