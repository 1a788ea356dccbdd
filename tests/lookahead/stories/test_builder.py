"""`load_dataset("hf_mech/stories", "grammar")`: rows, splits, processes, the cache, refusals."""

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data import local_datasets
from hf_mech.dataset_builders.stories import Stories
from hf_mech.hub import export_dataset
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.grammar import StorySettings, generate_rows, stories

NAME = "hf_mech/stories"


def load(**changes):
    return load_dataset(NAME, "grammar", **{"num_train": 90, "num_test": 40, **changes})


def test_rows_are_the_stories_of_the_grammar():
    splits = load(seed=3)
    for split, rows in splits.items():
        assert rows.column_names == ["text"]
        assert rows["text"][:] == [story.text for story in stories(3, 0, len(rows), split)]
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 90, "test": 40}
    assert "Belief State Transformer" in splits["train"].info.citation


def test_no_story_is_in_both_splits():
    splits = load(num_train=1_000, num_test=1_000)
    assert not set(splits["train"]["text"]) & set(splits["test"]["text"])


def test_processes_and_streaming_change_nothing(tmp_path):
    one, two = load(cache_dir=str(tmp_path / "one")), load(cache_dir=str(tmp_path / "two"), num_proc=2)
    streamed = load(streaming=True)
    for split in ("train", "test"):
        assert one[split].to_list() == two[split].to_list() == list(streamed[split])


def test_tables_do_not_show_in_the_rows(monkeypatch):
    settings = StorySettings(num_train=16 * 25)
    (whole,) = generate_rows(settings, "train", 3)
    monkeypatch.setattr("hf_mech.data.shards.ROWS_AT_A_TIME", 10)
    tables = list(generate_rows(settings, "train", 3))
    assert [len(table) for table in tables] == [10, 10, 5]
    assert [row for table in tables for row in table.to_pylist()] == whole.to_pylist()


def test_the_cache_knows_the_code_of_the_grammar():
    sources = local_datasets._project_sources("hf_mech.dataset_builders.stories")
    assert {f"hf_mech.lookahead.stories.{module}" for module in ("grammar", "plots")} <= set(sources)
    assert NAME in local_datasets.local_dataset_names()


def test_it_can_be_exported_and_loaded_without_the_builder(tmp_path):
    builder = Stories(config_name="grammar", num_train=30, num_test=10)
    export_dataset(builder, tmp_path)
    assert load_dataset(str(tmp_path), "grammar")["test"].to_list() == builder.as_dataset("test").to_list()


@pytest.mark.parametrize("changes", [{"num_train": 0}, {"num_test": 1.5}, {"seed": -1}])
def test_settings_that_make_no_sense_are_refused(changes):
    ((name, value),) = changes.items()
    with pytest.raises(LookaheadError, match=rf"{name} must be a whole number, .* got {value}"):
        load(**changes)
