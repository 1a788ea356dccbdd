"""Padding and packing change nothing: each sequence is what it is alone, for both encoders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import DataCollatorWithFlattening, Trainer, TrainingArguments

from hf_mech.models.belief_state import BeliefStateError
from hf_mech.models.belief_state.belief_state_inputs import sequences_of, suffixes_of

from .models import END, KINDS, PAD, model, tokens

LENGTHS = (6, 3, 9)


def packed() -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Three sequences, the second with its end token, and a row of them with padding between and around."""
    alone = [tokens(1, length, seed) for seed, length in enumerate(LENGTHS)]
    alone[1][:, -1] = END
    gap = torch.full((1, 2), PAD)
    parts = [gap, alone[0], alone[1], gap, alone[2], gap]
    real = [torch.ones_like(part) * (part is not gap) for part in parts]
    places = [torch.arange(part.shape[1])[None] * (part is not gap) for part in parts]
    ids, mask, positions = (torch.cat(some, 1) for some in (parts, real, places))
    return alone, {"input_ids": ids, "attention_mask": mask, "position_ids": positions}


@pytest.mark.parametrize(
    ("kind", "attention", "gap"),
    [
        ("gpt2", "eager", 1),
        ("gpt2", "sdpa", 2),
        ("llama", "sdpa", 1),
        ("qwen3", "eager", 2),
        ("qwen3", "sdpa", 1),
        *(pytest.param("gpt2", *rest, marks=pytest.mark.slow) for rest in (("eager", 2), ("sdpa", 1))),
        *(pytest.param("llama", *rest, marks=pytest.mark.slow) for rest in (("eager", 1), ("eager", 2), ("sdpa", 2))),
        *(pytest.param("qwen3", *rest, marks=pytest.mark.slow) for rest in (("eager", 1), ("sdpa", 2))),
    ],
)
def test_packed_sequences_are_those_sequences_alone(kind: str, attention: str, gap: int):
    """States, logits, loss and gradients."""
    made = model(kind, attn_implementation=attention, least_gap=gap)
    alone, row = packed()
    labels = row["input_ids"].masked_fill(row["attention_mask"] == 0, -100)
    items = sum(LENGTHS) - len(LENGTHS)
    outputs = made(**row, labels=labels, num_items_in_batch=items)
    each = [made(one, labels=one, num_items_in_batch=items) for one in alone]
    real = row["attention_mask"].bool()
    assert_close(outputs.logits[real], torch.cat([one.logits[0] for one in each]))
    assert_close(outputs.loss, sum(one.loss for one in each))
    ours = torch.autograd.grad(outputs.loss, list(made.parameters()))
    theirs = torch.autograd.grad(sum(one.loss for one in each), list(made.parameters()))
    for first, second in zip(ours, theirs, strict=True):
        assert_close(first, second)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_no_loss_and_no_logits(kind: str, side: str):
    made, batch, labels = model(kind), tokens(3, 8), tokens(3, 8)
    labels[1, :4] = -100
    plain = made(batch, labels=labels, suffix_ids=None)
    width = (4, 0) if side == "left" else (0, 4)
    pad = torch.nn.functional.pad
    mask = pad(torch.ones_like(batch), width)
    padded = made(pad(batch, width, value=PAD), attention_mask=mask, labels=pad(labels, width, value=-100))
    assert_close(padded.loss, plain.loss)
    assert_close(padded.logits[mask.bool()], plain.logits.flatten(0, 1))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_suffixes_changes_nothing(side: str):
    made, batch, suffix = model("llama"), tokens(3, 5), tokens(3, 4, seed=1)
    plain = made(batch, suffix_ids=suffix)
    width = (3, 0) if side == "left" else (0, 3)
    pad = torch.nn.functional.pad
    mask = pad(torch.ones_like(suffix), width)
    padded = made(batch, suffix_ids=pad(suffix, width, value=PAD), suffix_attention_mask=mask)
    for name in ("logits", "prev_logits"):
        assert_close(padded[name], plain[name])


def test_an_empty_suffix_is_the_end_token():
    made, batch = model(), tokens(2, 5)
    plain = made(batch, output_prev_logits=True)
    for suffix, mask in (
        (batch[:, :0], None),
        (torch.full((2, 1), END), None),
        (batch[:, :3], torch.zeros(2, 3)),
    ):
        outputs = made(batch, suffix_ids=suffix, suffix_attention_mask=mask)
        for name in ("logits", "prev_logits"):
            assert_close(outputs[name], plain[name])
    assert made(batch).prev_logits is None


def test_each_sequence_gets_its_end_token_where_it_lacks_one():
    alone, row = packed()
    made, source = sequences_of(row["input_ids"], row["attention_mask"], None, END, row["position_ids"])
    for number, one in enumerate(alone):
        wanted = one[0].tolist()
        assert made.tokens[made.sequence == number].tolist() == (wanted if wanted[-1] == END else [*wanted, END])
    assert source is not None
    kept = (made.sequence >= 0) & made.trained
    assert torch.equal(row["input_ids"].gather(1, source)[kept], made.tokens[kept])
    assert int(made.trained.sum()) == sum(LENGTHS) - len(LENGTHS)  # neither first tokens nor added end tokens


def test_suffixes_end_with_the_end_token():
    given = torch.tensor([[3, 4, END], [5, 6, 7], [8, PAD, PAD]])
    made = suffixes_of(given, torch.tensor([[1, 1, 1], [1, 1, 1], [1, 0, 0]]), END)
    rows = [row[real].tolist() for row, real in zip(made.tokens, made.sequence >= 0, strict=True)]
    assert rows == [[3, 4, END], [5, 6, 7, END], [8, END]]


def test_the_loss_does_not_depend_on_logits_to_keep():
    made, batch = model(), tokens(2, 7)
    plain, short = made(batch, labels=batch), made(batch, labels=batch, logits_to_keep=2)
    assert torch.equal(plain.loss, short.loss)
    assert_close(plain.logits[:, -2:], short.logits)


def test_the_loss_is_that_of_the_tokens_that_trainer_counts():
    """A causal model's Trainer counts the labels after the first column."""
    made, batch = model(), tokens(2, 7)
    assert_close(made(batch, labels=batch, num_items_in_batch=12).loss, made(batch, labels=batch).loss)


def test_unclear_rows_are_refused():
    made, batch = model(), tokens(1, 6)
    with pytest.raises(BeliefStateError, match="position_ids jump within a row"):
        made(batch, position_ids=torch.tensor([[0, 1, 2, 5, 6, 7]]))
    with pytest.raises(BeliefStateError, match="padding within a sequence"):
        made(batch, torch.tensor([[1, 1, 0, 1, 1, 1]]), torch.tensor([[0, 1, 0, 2, 0, 1]]))
    begins = torch.tensor([[0, 1, 2, 0, 1, 2]])
    with pytest.raises(BeliefStateError, match="suffix_ids are one a row"):
        made(batch, position_ids=begins, suffix_ids=batch)
    with pytest.raises(BeliefStateError, match="a cache holds one"):
        made(batch, position_ids=begins, use_cache=True)


def test_trainer_trains_on_flattened_rows(tmp_path: Path):
    """As it does on padded ones: plain gradient descent gives the same weights."""
    data = [{"input_ids": tokens(1, 5 + number % 4, number)[0].tolist()} for number in range(8)]

    def padded(examples: list[dict]) -> dict[str, torch.Tensor]:
        ids = [torch.tensor(example["input_ids"]) for example in examples]
        pad = torch.nn.utils.rnn.pad_sequence
        mask = pad([torch.ones_like(one) for one in ids], batch_first=True)
        labels = pad(ids, batch_first=True, padding_value=-100)
        labels[:, 0] = -100
        return {"input_ids": pad(ids, batch_first=True), "attention_mask": mask, "labels": labels}

    def trained(collator) -> list[torch.Tensor]:
        arguments = TrainingArguments(
            str(tmp_path),
            max_steps=2,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            optim="sgd",
            learning_rate=0.1,
            max_grad_norm=0.0,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        run = Trainer(model("llama"), arguments, train_dataset=data, data_collator=collator)
        run.train()
        return [weight.detach() for weight in run.model.parameters()]

    start = list(model("llama").parameters())
    flat, rows = trained(DataCollatorWithFlattening()), trained(padded)
    for first, second in zip(flat, rows, strict=True):
        assert_close(first, second)
    assert any(not torch.equal(first, second) for first, second in zip(flat, start, strict=True))
