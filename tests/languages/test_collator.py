"""The collator makes of rows the batches that are drawn directly."""

import pytest
import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.languages import (
    TASKS,
    DataCollatorForFormalLanguages,
    LanguagesError,
    formal_language_tokenizer,
    test_batch,
)
from hf_mech.models.strips.tokenization_strips import strips_tokenizer


@pytest.mark.parametrize("layout", ["mlm", "alm"])
@pytest.mark.parametrize("name", ["reverse_string", "stack_manipulation", "binary_addition"])
def test_rows_of_one_length_become_the_batch_that_test_batch_draws(name, layout, tmp_path):
    formal_language_tokenizer(name).save_pretrained(tmp_path)
    collate = DataCollatorForFormalLanguages(AutoTokenizer.from_pretrained(tmp_path), layout)
    batch = test_batch(name, layout, seed=0, length=9, count=5)
    task, tokens = TASKS[name], [*["[BOS]", "[PAD]", "[SEP]", "[MASK]"], *TASKS[name].symbols]
    rows = []
    full = test_batch(name, "alm", seed=0, length=9, count=5)
    for ids, labels in zip(full["input_ids"].tolist(), full["labels"].tolist(), strict=True):
        rows.append(
            {
                "inputs": [task.inputs.index(tokens[i]) for i in ids[1:10]],
                "outputs": [task.outputs.index(tokens[i]) for i in ids[11:]],
                "scored": [label != -100 for label in labels[11:]],
            }
        )
    collated = collate(rows)
    assert set(collated) == set(batch)
    for key, value in batch.items():
        assert torch.equal(collated[key], value)


@pytest.mark.parametrize("side", ["right", "left"])
def test_shorter_rows_are_padded_on_the_tokenizers_side(side):
    tokenizer = formal_language_tokenizer("reverse_string")
    tokenizer.padding_side = side
    rows = load_dataset("hf_mech/formal_languages", "reverse_string", num_train=400, num_test=1)["train"]
    loader = DataLoader(rows, batch_size=50, collate_fn=DataCollatorForFormalLanguages(tokenizer, "alm"))
    batch = next(iter(loader))
    for row, ids, mask, labels in zip(rows, *batch.values(), strict=False):
        size = 2 * len(row["inputs"]) + 2
        kept = slice(0, size) if side == "right" else slice(len(ids) - size, None)
        x, y = ([4 + i for i in row[column]] for column in ("inputs", "outputs"))
        assert ids[kept].tolist() == [0, *x, 2, *y]
        assert labels[kept].tolist() == [-100] * (len(x) + 2) + y
        assert mask[kept].all()
        assert mask.sum() == size
        assert (ids[mask == 0] == 1).all()
        assert (labels[mask == 0] == -100).all()


def collator(name="reverse_string", layout="mlm"):
    return DataCollatorForFormalLanguages(formal_language_tokenizer(name), layout)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: collator(layout="causal"), r"one of mlm, alm, got 'causal'"),
        (lambda: DataCollatorForFormalLanguages(strips_tokenizer(["a", "b"])), r"task None.*formal_language_tokenizer"),
        (lambda: collator()([]), r"no rows"),
        (lambda: collator()([{"inputs": [0]}]), r"columns inputs and outputs, got inputs.*remove_unused_columns=False"),
        (lambda: collator()([{"inputs": [0, 2], "outputs": [0]}]), r"inputs of .*2 symbols, 0 to 1, got \[0, 2\]"),
        (lambda: collator()([{"inputs": [0, 1], "outputs": [-1]}]), r"outputs of .*got \[-1\]"),
        (lambda: collator()([{"inputs": [0], "outputs": [0], "scored": [1, 1]}]), r"each of its 1 outputs, got 2"),
    ],
)
def test_what_the_collator_cannot_lay_out_is_refused(call, message):
    with pytest.raises(LanguagesError, match=message):
        call()


def test_a_tokenizer_with_other_symbols_is_refused():
    tokenizer = formal_language_tokenizer("reverse_string")
    tokenizer.add_tokens(["c"])
    with pytest.raises(LanguagesError, match=r"task 'reverse_string' and 7 tokens"):
        DataCollatorForFormalLanguages(tokenizer)
