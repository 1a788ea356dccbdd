"""Stock habits on a stock GPT-2 checkpoint with its stock tokenizer: pipeline, generate, Trainer, TRL, test-llm."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoTokenizer,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    default_data_collator,
    pipeline,
)
from trl import SFTConfig, SFTTrainer
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.models.stack import StackGPT2ForCausalLM
from tests.stock import TEXTS

from .stock import stock_folder

PROMPTS = ["the cat", "a bird sang to", "the"]
BLOCK = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stock_folder(tmp_path_factory.mktemp("stock"))


@pytest.fixture
def tokenizer(folder: Path) -> Any:
    made = AutoTokenizer.from_pretrained(folder, padding_side="left")
    made.pad_token = made.eos_token
    return made


@pytest.fixture
def model(folder: Path) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM.from_pretrained(folder)


def arguments(config: type, out: Path, **options: Any) -> Any:
    return config(
        output_dir=str(out),
        per_device_train_batch_size=2,
        learning_rate=1e-3,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=1,
        **options,
    )


def losses(trainer: Trainer) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def stacks_moved(model: StackGPT2ForCausalLM, before: dict[str, torch.Tensor]) -> bool:
    now = {name: weight for name, weight in model.state_dict().items() if ".stack." in name}
    return bool(now) and all(not torch.equal(weight, before[name]) for name, weight in now.items())


def generated(model: Any, tokenizer: Any, prompts: list[str], **options: Any) -> list[str]:
    asked = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "return_full_text": False}
    answers = pipeline("text-generation", model=model, tokenizer=tokenizer)(prompts, **asked, **options)
    return [answer[0]["generated_text"] for answer in answers]


def test_the_text_generation_pipeline(folder: Path, tokenizer: Any):
    """Behind a zero gate the texts are stock GPT-2's, in a batch with padding on the left and one by one."""
    gated = StackGPT2ForCausalLM.from_pretrained(folder, stack_gate=True)
    expected = generated(GPT2LMHeadModel.from_pretrained(folder), tokenizer, PROMPTS)
    assert len(set(expected)) > 1
    for batch_size in (1, 3):
        assert generated(gated, tokenizer, PROMPTS, batch_size=batch_size) == expected


def test_the_pipeline_on_an_empty_prompt(folder: Path, model: StackGPT2ForCausalLM, tokenizer: Any):
    """It begins with the BOS of the generation configuration, as stock GPT-2's does."""
    gated, prompts = StackGPT2ForCausalLM.from_pretrained(folder, stack_gate=True), ["", "the cat"]
    assert generated(gated, tokenizer, prompts) == generated(
        GPT2LMHeadModel.from_pretrained(folder), tokenizer, prompts
    )
    assert all(generated(model, tokenizer, prompts))


def test_generate_on_a_row_of_padding_alone(model: StackGPT2ForCausalLM, tokenizer: Any):
    """An empty prompt in a batch: the first generated token is the bottom of its stack."""
    batch = tokenizer(["", "the cat sat"], return_tensors="pt", padding=True)
    asked = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    made = model.double().generate(**batch, **asked)
    assert torch.equal(made, model.generate(**batch, **asked, use_cache=False))


@pytest.mark.parametrize("options", [{"cache_implementation": "static", "disable_compile": True}, {"num_beams": 2}])
def test_generate_is_the_uncached_forward(model: StackGPT2ForCausalLM, tokenizer: Any, options: dict[str, Any]):
    batch = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    asked = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    made = model.double().generate(**batch, **asked, **options)
    plain = model.generate(**batch, **asked, **{k: v for k, v in options.items() if k == "num_beams"}, use_cache=False)
    assert torch.equal(made, plain)


def test_trainer_on_grouped_blocks(model: StackGPT2ForCausalLM, tokenizer: Any, tmp_path: Path):
    """As the causal language modelling example of transformers groups texts: blocks begin anywhere in a text."""
    ids = list(chain.from_iterable(tokenizer([*TEXTS] * 4)["input_ids"]))
    blocks = [ids[i : i + BLOCK] for i in range(0, len(ids) - BLOCK + 1, BLOCK)]
    data = Dataset.from_dict({"input_ids": blocks, "labels": blocks, "attention_mask": [[1] * BLOCK] * len(blocks)})
    assert len({block[0] for block in blocks}) > 1
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    given = arguments(TrainingArguments, tmp_path, max_steps=12)
    trainer = Trainer(model, given, train_dataset=data, data_collator=default_data_collator)
    trainer.train()
    seen = losses(trainer)
    assert seen[-1] < seen[0]
    assert stacks_moved(model, before)


def test_label_smoothing_predicts_the_next_token(model: StackGPT2ForCausalLM, tokenizer: Any, tmp_path: Path):
    """`Trainer` shifts the labels for the causal language models that it knows by name, so it must know ours."""
    ids = tokenizer(TEXTS[0])["input_ids"]
    data = Dataset.from_dict({"input_ids": [ids], "labels": [ids]})
    given = arguments(TrainingArguments, tmp_path, max_steps=1, label_smoothing_factor=0.1)
    model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), label_smoothing=0.1)
    trainer = Trainer(model, given, eval_dataset=data, data_collator=default_data_collator)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(float(expected), rel=1e-5)


PACKED = {"packing": True, "packing_strategy": "bfd"}
PADDING_FREE = {"padding_free": True, "max_length": None}


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing. is deprecated:FutureWarning")  # set by TRL itself
@pytest.mark.parametrize("options", [PACKED, pytest.param(PADDING_FREE, marks=pytest.mark.slow)])
def test_the_rows_of_sft_are_their_sequences_alone(
    model: StackGPT2ForCausalLM, tokenizer: Any, tmp_path: Path, options: dict[str, Any]
):
    """TRL's own batches: one row, no attention mask, positions that begin anew. Such rows train the stacks."""
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    given = arguments(SFTConfig, tmp_path, max_steps=8, **{"max_length": 32, **options})
    data = Dataset.from_dict({"text": [*TEXTS] * 4})
    trainer = SFTTrainer(model, given, train_dataset=data, processing_class=tokenizer)
    batch = next(iter(trainer.get_train_dataloader()))
    assert "attention_mask" not in batch
    begins = (batch["position_ids"][0] == 0).nonzero().flatten().tolist()
    assert len(begins) > 1
    model.eval()
    rows = batch["input_ids"].tensor_split(begins[1:], 1)
    expected = torch.cat([model(row).logits for row in rows], 1)
    batch.pop("labels")
    torch.testing.assert_close(model(**batch).logits, expected, rtol=1e-4, atol=1e-5)
    trainer.train()
    assert losses(trainer)[-1] < losses(trainer)[0]
    assert stacks_moved(model, before)


@pytest.mark.slow
def test_hf_mech_test_llm(tmp_path: Path):
    """Our own command on a converted stock checkpoint."""
    converted = tmp_path / "converted"
    long = stock_folder(tmp_path / "long", n_positions=1024)
    StackGPT2ForCausalLM.from_pretrained(long).save_pretrained(converted)
    AutoTokenizer.from_pretrained(long).save_pretrained(converted)
    command = ["test-llm", str(converted), "--con-count", "1", "--con-length", "1", "--prompts", "2", "--max-tokens"]
    command += ["4", "--batch-size", "2", "--device", "cpu", "--no-system-prompt", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "results.json").is_file()
