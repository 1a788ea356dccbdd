"""The tasks by `load_dataset`, and the collator that makes batches of their rows."""

from collections import Counter

import pytest
import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

import hf_mech  # noqa: F401  # registers the data sets
from dataset_builders.formal_languages import FormalLanguages, FormalLanguageSettings, generate_rows
from hf_mech import local_datasets
from hf_mech.formal_languages import (
    TASKS,
    DataCollatorForFormalLanguages,
    DatasetSettingsError,
    LayoutError,
    TaskError,
    formal_language_tokenizer,
    test_batch,
)
from hf_mech.hub.dataset_export import export_dataset
from hf_mech.models.strips.tokenization_strips import strips_tokenizer

NAME = "hf_mech/formal_languages"


def load(name, **changes):
    return load_dataset(NAME, name, **{"num_train": 400, "num_test": 120, **changes})


# ----------------------------------------------------------------------------------------------------- the data set


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads_with_its_symbols_and_its_lengths(name):
    task, splits = TASKS[name], load(name)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 400, "test": 120}
    train, test = splits["train"], splits["test"]
    assert train.features == test.features
    assert train.features["inputs"].feature.names == list(task.inputs)
    assert train.features["outputs"].feature.names == list(task.outputs)

    assert {len(x) for x in train["inputs"]} <= set(task.lengths(1, 40))
    lengths = list(task.lengths(41, 100))
    assert [len(x) for x in test["inputs"]] == [lengths[i % len(lengths)] for i in range(120)]
    for row in (*train, *test):
        assert len(row["scored"]) == len(row["outputs"])
        assert 0 <= min(row["inputs"]) <= max(row["inputs"]) < len(task.inputs)
        assert 0 <= min(row["outputs"]) <= max(row["outputs"]) < len(task.outputs)


def test_rows_hold_each_input_beside_its_own_output():
    """Rows of mixed lengths are put back into their order after they were drawn by length."""
    for row in load("reverse_string")["train"]:
        assert row["outputs"] == row["inputs"][::-1]
    for row in load("bucket_sort")["test"]:
        assert row["outputs"] == sorted(row["inputs"])


def test_training_lengths_are_uniform():
    counts = Counter(len(x) for x in load("parity_check", num_train=40_000)["train"]["inputs"])
    assert set(counts) == set(range(1, 41))
    assert all(840 < n < 1160 for n in counts.values())  # 1,000 of each, within five standard deviations


def test_no_example_is_in_both_splits():
    splits = load("stack_manipulation", max_train_length=3, max_test_length=5)
    train, test = ({tuple(x) for x in rows["inputs"]} for rows in splits.values())
    assert max(map(len, train)) == 3
    assert {len(x) for x in test} == {4, 5}
    assert not train & test


def test_tables_do_not_show_in_the_rows(monkeypatch):
    """More rows than a table holds: the split goes on where the table before it ended."""
    settings, task = FormalLanguageSettings(num_train=16 * 25, num_test=16 * 25), TASKS["odds_first"]
    whole = next(generate_rows(task, settings, "train", 3))
    monkeypatch.setattr("dataset_builders.formal_languages.ROWS_AT_A_TIME", 10)
    tables = list(generate_rows(task, settings, "train", 3))
    assert [len(t) for t in tables] == [10, 10, 5]
    assert len(whole) == 25
    tests = [len(x) for t in generate_rows(task, settings, "test", 3) for x in t["inputs"].to_pylist()]
    assert tests == [41 + row % 60 for row in range(75, 100)]


@pytest.mark.parametrize("name", ["stack_manipulation", "solve_equation"])
def test_processes_and_streaming_change_nothing(name, tmp_path):
    one = load(name, cache_dir=str(tmp_path / "one"))
    two = load(name, cache_dir=str(tmp_path / "two"), num_proc=2)
    streamed = load(name, streaming=True)
    for split in ("train", "test"):
        rows = one[split].to_list()
        assert rows == two[split].to_list()
        assert rows == list(streamed[split])


def test_seeds_and_splits_have_their_own_examples():
    one, two = (load("reverse_string", seed=s, max_train_length=40)["test"]["inputs"][:] for s in (0, 1))
    assert one != two


def test_a_single_row_is_enough():
    splits = load("modular_arithmetic", num_train=1, num_test=1)
    assert [len(rows) for rows in splits.values()] == [1, 1]


def test_the_cache_knows_the_code_of_the_tasks():
    sources = local_datasets._project_sources("dataset_builders.formal_languages")
    for module in ("task", "tasks", "arithmetic", "automata", "strings", "binary"):
        assert f"hf_mech.formal_languages.{module}" in sources
    assert NAME in local_datasets.local_dataset_names()


def test_it_can_be_exported_and_loaded_without_the_builder(tmp_path):
    builder = FormalLanguages(config_name="stack_manipulation", num_train=30, num_test=10)
    export_dataset(builder, tmp_path)
    assert load_dataset(str(tmp_path), "stack_manipulation")["test"].to_list() == builder.as_dataset("test").to_list()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_train": 0}, r"num_train must be a whole number, 1 or more, got 0"),
        ({"num_test": 2.5}, r"num_test must be .*got 2\.5"),
        ({"seed": -1}, r"seed must be .*0 or more, got -1"),
        ({"max_train_length": 0}, r"max_train_length must be .*got 0"),
        ({"max_train_length": 100}, r"max_test_length must be above max_train_length, got 100 and 100"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(DatasetSettingsError, match=message):
        load("reverse_string", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_train_length": 2, "max_test_length": 9}, r"length 1 to 2: its lengths begin at 3"),
        ({"max_train_length": 1, "max_test_length": 2}, r"length 1 to 1"),
    ],
)
def test_lengths_that_the_task_lacks_are_refused(changes, message):
    with pytest.raises(TaskError, match=message):
        load("solve_equation", **changes)


def test_an_unknown_task_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"'palindromes' not found.*reverse_string"):
        load("palindromes")


# ------------------------------------------------------------------------------------------------------ the collator


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
    rows = load("reverse_string")["train"]
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
    with pytest.raises(LayoutError, match=message):
        call()


def test_a_tokenizer_with_other_symbols_is_refused():
    tokenizer = formal_language_tokenizer("reverse_string")
    tokenizer.add_tokens(["c"])
    with pytest.raises(LayoutError, match=r"task 'reverse_string' and 7 tokens"):
        DataCollatorForFormalLanguages(tokenizer)
