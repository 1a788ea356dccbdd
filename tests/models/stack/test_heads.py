"""The heads of StackGPT2 and StackRoberta: stock checkpoints, losses, tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers.pipelines import PIPELINE_REGISTRY

from hf_mech.models.stack import (
    StackGPT2ForQuestionAnswering,
    StackGPT2ForSequenceClassification,
    StackRobertaForMultipleChoice,
    StackRobertaForQuestionAnswering,
    StackRobertaForSequenceClassification,
)

from .contract import answering, tagging_rows
from .stock import STOCK, TEXT, every_second, heads, logits_of, new, stock_model, with_tokenizer

classifiers = pytest.mark.parametrize(
    "ours", [StackGPT2ForSequenceClassification, StackRobertaForSequenceClassification], ids=lambda head: head.__name__
)


def left_padded(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The inputs, without labels, with three columns of padding before them."""
    return {
        name: torch.nn.functional.pad(batch[name], (3, 0), value=name == "input_ids")
        for name in ("input_ids", "attention_mask")
    }


@heads
def test_without_a_stack_it_is_the_stock_head_bit_for_bit(ours: Any):
    theirs, model, batch = stock_model(ours), new(ours, use_stack=False), STOCK[ours][1](3, 9, 0)
    model.load_state_dict(theirs.state_dict())
    expected, outputs = theirs(**batch), model(**batch)
    assert torch.equal(outputs.loss, expected.loss)
    for logits, wanted in zip(logits_of(outputs), logits_of(expected), strict=True):
        assert torch.equal(logits, wanted)
    expected, outputs = theirs(**left_padded(batch)), model(**left_padded(batch))
    for logits, wanted in zip(logits_of(outputs), logits_of(expected), strict=True):
        assert torch.equal(logits, wanted)


@every_second
def test_a_stock_checkpoint_loads_and_only_the_stacks_are_new(ours: Any, tmp_path: Path):
    theirs, batch = stock_model(ours), STOCK[ours][1](3, 9, 0)
    theirs.save_pretrained(tmp_path)
    model, info = ours.from_pretrained(tmp_path, stack_gate=True, output_loading_info=True)
    assert info["missing_keys"]
    assert all(".stack." in name for name in info["missing_keys"])
    assert not info["unexpected_keys"]
    for name, weight in theirs.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name
    outputs, plain = model(**batch), ours.from_pretrained(tmp_path)(**batch)
    for logits, wanted, ungated in zip(logits_of(outputs), logits_of(theirs(**batch)), logits_of(plain), strict=True):
        assert torch.equal(logits, wanted)  # the gate is zero
        assert not torch.allclose(ungated, wanted)
    outputs.loss.backward()
    gates = {name: weight for name, weight in model.named_parameters() if name.endswith(".gate")}
    assert len(gates) == 2
    assert any(weight.grad is not None and weight.grad.any() for weight in gates.values())


@heads
def test_stacks_are_in_the_outputs_and_operations_are_taken(ours: Any):
    model, batch = new(ours), STOCK[ours][1](2, 6, 0)
    rows = batch["input_ids"].numel() // 6
    operations = torch.randint(0, 3, batch["input_ids"].shape, generator=torch.Generator().manual_seed(1))
    outputs = model(**batch, output_stack_attentions=True, output_hidden_states=True, stack_operations=operations)
    assert [tuple(alpha.shape) for alpha in outputs.stack_attentions] == [(rows, 6, 6)] * 2
    assert len(outputs.hidden_states) == 3
    assert any(
        not torch.equal(given, learned)
        for given, learned in zip(logits_of(outputs), logits_of(model(**batch)), strict=True)
    )
    as_tuple = model(**batch, output_stack_attentions=True, return_dict=False)
    assert torch.equal(as_tuple[1], logits_of(model(**batch))[0])
    assert len(as_tuple[-2]) == 2


@classifiers
@pytest.mark.parametrize(
    ("problem", "labels"),
    [
        ("regression", torch.tensor([0.5, -1.0, 2.0])),
        ("multi_label_classification", torch.tensor([[1.0, 0.0, 1.0]] * 3)),
        ("single_label_classification", torch.tensor([0, 2, 1])),
        (None, torch.tensor([0, 2, 1])),
    ],
)
def test_every_problem_type_has_the_stock_loss(ours: Any, problem: str | None, labels: torch.Tensor):
    options = {"num_labels": 1 if problem == "regression" else 3, "problem_type": problem}
    theirs, model = stock_model(ours, **options), new(ours, use_stack=False, **options)
    model.load_state_dict(theirs.state_dict())
    batch = {**tagging_rows(3, 9, 0), "labels": labels}
    assert torch.equal(model(**batch).loss, theirs(**batch).loss)
    assert model.config.problem_type == theirs.config.problem_type is not None


@pytest.mark.parametrize("ours", [StackGPT2ForQuestionAnswering, StackRobertaForQuestionAnswering])
def test_answers_outside_the_inputs_are_ignored(ours: Any):
    model, batch = new(ours), answering(3, 9, 0)
    batch["start_positions"][2] = batch["end_positions"][2] = 99
    first = {name: tensor[:2] for name, tensor in batch.items()}
    assert_close(model(**batch).loss, model(**first).loss)


# ---------------------------------------------------------------------------------- stock tokenizers


def begun(ours: Any, tokenizer: Any, text: str) -> str:
    """RoBERTa's tokenizer adds its <s>; GPT-2's adds nothing."""
    return tokenizer.bos_token + text if "GPT2" in ours.__name__ else text


@pytest.mark.parametrize(
    "ours",
    [StackGPT2ForQuestionAnswering, pytest.param(StackRobertaForQuestionAnswering, marks=pytest.mark.slow)],
)
def test_question_answering_with_a_stock_tokenizer(ours: Any, stock_tokenizers: dict[str, Any], tmp_path: Path):
    """transformers 5 has no question answering pipeline; the head trains and answers on a stock tokenizer's pairs."""
    assert "question-answering" not in PIPELINE_REGISTRY.get_supported_tasks()
    model, tokenizer = with_tokenizer(ours, stock_tokenizers, tmp_path)
    question = begun(ours, tokenizer, "who sat")
    batch = tokenizer([question] * 2, TEXT[:2], padding=True, return_tensors="pt")
    start = torch.tensor([5, 6])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(40):
        optimizer.zero_grad()
        outputs = model(**batch, start_positions=start, end_positions=start + 1)
        outputs.loss.backward()
        optimizer.step()
    assert outputs.start_logits.argmax(1).tolist() == start.tolist()
    assert outputs.end_logits.argmax(1).tolist() == (start + 1).tolist()


def test_multiple_choice_with_a_stock_tokenizer(stock_tokenizers: dict[str, Any], tmp_path: Path):
    """Choices of several lengths, padded on either side, have the logits that each has alone."""
    model, tokenizer = with_tokenizer(StackRobertaForMultipleChoice, stock_tokenizers, tmp_path)
    for side in ("left", "right"):
        tokenizer.padding_side = side
        encoded = tokenizer([TEXT[0]] * 2, TEXT[1:], padding=True, return_tensors="pt")
        together = model(**{name: tensor[None] for name, tensor in encoded.items()}).logits[0]
        for i, choice in enumerate(TEXT[1:]):
            alone = tokenizer([TEXT[0]], [choice], return_tensors="pt")
            assert_close(model(**{name: tensor[None] for name, tensor in alone.items()}).logits[0, 0], together[i])
