"""The tasks by `load_dataset`: symbols, lengths, splits, processes, and settings that are refused."""

from collections import Counter

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data import local_datasets
from hf_mech.dataset_builders.formal_languages import FormalLanguages
from hf_mech.hub import export_dataset
from hf_mech.languages import TASKS, LanguagesError
from hf_mech.languages.rows import FormalLanguageSettings, generate_rows

NAME = "hf_mech/formal_languages"


def load(name, **changes):
    return load_dataset(NAME, name, **{"num_train": 400, "num_test": 120, **changes})


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
    monkeypatch.setattr("hf_mech.data.shards.ROWS_AT_A_TIME", 10)
    tables = list(generate_rows(task, settings, "train", 3))
    assert [len(t) for t in tables] == [10, 10, 5]
    assert len(whole) == 25
    tests = [len(x) for t in generate_rows(task, settings, "test", 3) for x in t["inputs"].to_pylist()]
    assert tests == [41 + row % 60 for row in range(75, 100)]


@pytest.mark.parametrize("name", ["stack_manipulation", pytest.param("solve_equation", marks=pytest.mark.slow)])
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
    sources = local_datasets._project_sources("hf_mech.dataset_builders.formal_languages")
    for module in ("rows", "task", "tasks"):
        assert f"hf_mech.languages.{module}" in sources
    assert {"hf_mech.dataset_builders._base", "hf_mech.data.shards", "hf_mech.data.random_numbers"} <= set(sources)
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
    with pytest.raises(LanguagesError, match=message):
        load("reverse_string", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_train_length": 2, "max_test_length": 9}, r"length 1 to 2: its lengths begin at 3"),
        ({"max_train_length": 1, "max_test_length": 2}, r"length 1 to 1"),
    ],
)
def test_lengths_that_the_task_lacks_are_refused(changes, message):
    with pytest.raises(LanguagesError, match=message):
        load("solve_equation", **changes)


def test_an_unknown_task_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"'palindromes' not found.*reverse_string"):
        load("palindromes")
