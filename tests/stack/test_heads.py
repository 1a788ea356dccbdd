"""The heads of StackGPT2 and StackRoberta: stock checkpoints, losses, padding, tokenizers, pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from torch.testing import assert_close
from transformers import (
    GPT2Config,
    GPT2ForQuestionAnswering,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    GPT2Tokenizer,
    RobertaConfig,
    RobertaForCausalLM,
    RobertaForMaskedLM,
    RobertaForMultipleChoice,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaTokenizer,
    pipeline,
)
from transformers.pipelines import PIPELINE_REGISTRY

from hf_mech.models.stack import (
    StackGPT2ForCausalLM,
    StackGPT2ForQuestionAnswering,
    StackGPT2ForSequenceClassification,
    StackGPT2ForTokenClassification,
    StackRobertaForCausalLM,
    StackRobertaForMaskedLM,
    StackRobertaForMultipleChoice,
    StackRobertaForQuestionAnswering,
    StackRobertaForSequenceClassification,
    StackRobertaForTokenClassification,
)

from .contract import (
    answering,
    choosing,
    gpt2,
    predicting_tokens,
    roberta,
    tagging_rows,
    tagging_tokens,
)

STOCK = {
    StackGPT2ForCausalLM: (GPT2LMHeadModel, predicting_tokens),
    StackGPT2ForQuestionAnswering: (GPT2ForQuestionAnswering, answering),
    StackGPT2ForSequenceClassification: (GPT2ForSequenceClassification, tagging_rows),
    StackGPT2ForTokenClassification: (GPT2ForTokenClassification, tagging_tokens),
    StackRobertaForCausalLM: (RobertaForCausalLM, predicting_tokens),
    StackRobertaForMaskedLM: (RobertaForMaskedLM, predicting_tokens),
    StackRobertaForMultipleChoice: (RobertaForMultipleChoice, choosing),
    StackRobertaForQuestionAnswering: (RobertaForQuestionAnswering, answering),
    StackRobertaForSequenceClassification: (RobertaForSequenceClassification, tagging_rows),
    StackRobertaForTokenClassification: (RobertaForTokenClassification, tagging_tokens),
}
heads = pytest.mark.parametrize("ours", STOCK, ids=lambda head: head.__name__)
classifiers = pytest.mark.parametrize(
    "ours", [StackGPT2ForSequenceClassification, StackRobertaForSequenceClassification], ids=lambda head: head.__name__
)


def config(ours: Any, **options: Any) -> Any:
    if ours is StackRobertaForCausalLM:
        options["is_decoder"] = True
    return gpt2(**options) if "GPT2" in ours.__name__ else roberta(**options)


def new(ours: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return ours(config(ours, **options)).eval()


def stock_model(ours: Any, **options: Any) -> Any:
    """A stock model with the sizes of our configuration."""
    stock_config = GPT2Config if "GPT2" in ours.__name__ else RobertaConfig
    made = config(ours, **options).to_dict()
    known = {key: value for key, value in made.items() if hasattr(stock_config(), key) and key != "model_type"}
    torch.manual_seed(0)
    return STOCK[ours][0](stock_config(**{**known, **options})).eval()


def logits_of(outputs: Any) -> list[torch.Tensor]:
    return [outputs[name] for name in ("logits", "start_logits", "end_logits") if name in outputs]


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


@heads
def test_a_stock_checkpoint_loads_and_only_the_stacks_are_new(ours: Any, tmp_path: Path):
    theirs, batch = stock_model(ours), STOCK[ours][1](3, 9, 0)
    theirs.save_pretrained(tmp_path)
    model, info = ours.from_pretrained(tmp_path, stack_gate=True, output_loading_info=True)
    assert info["missing_keys"]
    assert all(".stack." in name for name in info["missing_keys"])
    assert not info["unexpected_keys"]
    for name, weight in theirs.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name
    for logits, wanted in zip(logits_of(model(**batch)), logits_of(theirs(**batch)), strict=True):
        assert torch.equal(logits, wanted)  # the gate is zero


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


# ---------------------------------------------------------------------------------- stock tokenizers and pipelines

TEXT = ["the cat sat on the mat and looked at the dog", "a dog barked at the cat in the house", "cats and dogs eat"]
BPE: dict[str, Any] = {"vocab_size": 400, "min_frequency": 1, "show_progress": False}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """RoBERTa's and GPT-2's own tokenizers, with a small vocabulary."""
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(TEXT, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"], **BPE)
    folder = tmp_path_factory.mktemp("tokenizer")
    bpe.save_model(str(folder))
    files = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
    return {"RobertaTokenizer": RobertaTokenizer(**files), "GPT2Tokenizer": GPT2Tokenizer(**files, pad_token="<pad>")}


def with_tokenizer(ours: Any, tokenizers: dict[str, Any], folder: Path, **options: Any) -> tuple[Any, Any]:
    """A stack model from a stock checkpoint of the tokenizer's size, and the tokenizer; both from their folder."""
    tokenizer = tokenizers["GPT2Tokenizer" if "GPT2" in ours.__name__ else "RobertaTokenizer"]
    stock_config = GPT2Config if "GPT2" in ours.__name__ else RobertaConfig
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64}
    tokens = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    torch.manual_seed(0)
    STOCK[ours][0](stock_config(vocab_size=len(tokenizer), **sizes, **tokens, **options)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return ours.from_pretrained(folder), tokenizer


def begun(ours: Any, tokenizer: Any, text: str) -> str:
    """RoBERTa's tokenizer adds its <s>; GPT-2's adds nothing."""
    return tokenizer.bos_token + text if "GPT2" in ours.__name__ else text


@classifiers
def test_text_classification_pipeline(ours: Any, tokenizers: dict[str, Any], tmp_path: Path):
    model, tokenizer = with_tokenizer(ours, tokenizers, tmp_path, id2label={0: "cat", 1: "dog", 2: "both"})
    texts = [begun(ours, tokenizer, text) for text in TEXT]
    for side in ("right", "left"):
        tokenizer.padding_side = side
        classify = pipeline("text-classification", model=model, tokenizer=tokenizer)
        together, alone = classify(texts, batch_size=3, top_k=None), [classify([text], top_k=None)[0] for text in texts]
        for row, single in zip(together, alone, strict=True):
            assert {entry["label"] for entry in row} == {"cat", "dog", "both"}
            assert_close(
                {entry["label"]: entry["score"] for entry in row},
                {entry["label"]: entry["score"] for entry in single},
                atol=1e-5,
                rtol=1e-4,
            )


@pytest.mark.parametrize("ours", [StackGPT2ForTokenClassification, StackRobertaForTokenClassification])
def test_token_classification_pipeline(ours: Any, tokenizers: dict[str, Any], tmp_path: Path):
    model, tokenizer = with_tokenizer(ours, tokenizers, tmp_path, id2label={0: "A", 1: "B"})
    tag = pipeline("token-classification", model=model, tokenizer=tokenizer, ignore_labels=[])
    text = begun(ours, tokenizer, TEXT[0])
    tags = tag(text)
    encoded = tokenizer(text, return_tensors="pt")
    expected = model(**encoded).logits[0].argmax(-1).tolist()
    found = {entry["index"]: entry["entity"] for entry in tags}
    inner = range(1, len(expected) - 1)  # whether the ends are special tokens depends on the tokenizer
    assert set(inner) <= set(found)
    assert all(entity == "AB"[expected[index]] for index, entity in found.items())


@pytest.mark.parametrize("ours", [StackGPT2ForQuestionAnswering, StackRobertaForQuestionAnswering])
def test_question_answering_with_a_stock_tokenizer(ours: Any, tokenizers: dict[str, Any], tmp_path: Path):
    """transformers 5 has no question answering pipeline; the head trains and answers on a stock tokenizer's pairs."""
    assert "question-answering" not in PIPELINE_REGISTRY.get_supported_tasks()
    model, tokenizer = with_tokenizer(ours, tokenizers, tmp_path)
    question = begun(ours, tokenizer, "who sat")
    batch = tokenizer([question] * 2, TEXT[:2], padding=True, return_tensors="pt")
    start = torch.tensor([5, 6])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        outputs = model(**batch, start_positions=start, end_positions=start + 1)
        outputs.loss.backward()
        optimizer.step()
    assert outputs.start_logits.argmax(1).tolist() == start.tolist()
    assert outputs.end_logits.argmax(1).tolist() == (start + 1).tolist()


def test_multiple_choice_with_a_stock_tokenizer(tokenizers: dict[str, Any], tmp_path: Path):
    """Choices of several lengths, padded on either side, have the logits that each has alone."""
    model, tokenizer = with_tokenizer(StackRobertaForMultipleChoice, tokenizers, tmp_path)
    for side in ("left", "right"):
        tokenizer.padding_side = side
        encoded = tokenizer([TEXT[0]] * 2, TEXT[1:], padding=True, return_tensors="pt")
        together = model(**{name: tensor[None] for name, tensor in encoded.items()}).logits[0]
        for i, choice in enumerate(TEXT[1:]):
            alone = tokenizer([TEXT[0]], [choice], return_tensors="pt")
            assert_close(model(**{name: tensor[None] for name, tensor in alone.items()}).logits[0, 0], together[i])
