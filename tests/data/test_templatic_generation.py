"""Templatic generation by `load_dataset`: tasks, splits, sizes, and the published data set under the same columns."""

import json

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data import local_datasets
from hf_mech.dataset_builders.templatic_generation import TemplaticGeneration
from hf_mech.hub import export_dataset
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import TemplaticSettings, generate, generate_rows
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, load_published

NAME = "hf_mech/templatic_generation"


def load(name, **changes):
    return load_dataset(NAME, name, **{"num_train": 90, "num_eval": 20, **changes})


@pytest.mark.parametrize("task", TASKS)
def test_every_task_loads_with_its_splits(task):
    splits = load(task)
    assert {split: len(rows) for split, rows in splits.items()} == {s: 90 if s == "train" else 20 for s in SPLITS}
    for split, rows in splits.items():
        assert rows.column_names == ["prompt", "completion", "info"]
        wanted = generate(task, split, stop=len(rows))
        assert rows.to_list() == [{"prompt": e.prompt, "completion": e.completion, "info": e.info} for e in wanted]
    echo = [i for i, row in enumerate(splits["train"]) if json.loads(row["info"])["type"] == "echo"]
    assert echo == [39, 79]


def test_the_whole_sizes_are_those_of_table_1():
    for name, task in TASKS.items():
        settings = TemplaticSettings(name)
        assert {s: settings.rows(s) for s in SPLITS} == {s: task.size(s) for s in SPLITS}
    large = TemplaticSettings("1_shot_rlw", num_train=300_000, num_eval=10_000)
    assert [large.rows(s) for s in ("train", "dev", "ood_lexical")] == [300_000, 10_000, 8_400]


def test_the_shards_of_a_whole_split_have_its_size():
    settings = TemplaticSettings("1_shot_rlw")
    shards = [list(generate_rows(settings, "ood_cons_len_3", shard)) for shard in range(16)]
    assert [sum(map(len, tables)) for tables in shards] == [8_400 // 16] * 16
    prompts = [text for tables in shards for table in tables for text in table["prompt"].to_pylist()]
    assert prompts[-1] == next(generate("1_shot_rlw", "ood_cons_len_3", start=8_399)).prompt


def test_a_smaller_data_set_is_the_beginning_of_the_larger():
    small, large = load("2_shot_rlw", num_train=25, num_eval=7), load("2_shot_rlw")
    for split in SPLITS:
        assert small[split].to_list() == large[split].to_list()[: len(small[split])]


def test_tables_do_not_show_in_the_rows(monkeypatch):
    """More rows than a table holds: the split goes on where the table before it ended."""
    settings = TemplaticSettings("1_shot_rlw", num_train=16 * 25)
    (whole,) = generate_rows(settings, "train", 3)
    monkeypatch.setattr("hf_mech.data.shards.ROWS_AT_A_TIME", 10)
    tables = list(generate_rows(settings, "train", 3))
    assert [len(t) for t in tables] == [10, 10, 5]
    assert [row for t in tables for row in t.to_pylist()] == whole.to_pylist()


@pytest.mark.slow
def test_processes_and_streaming_change_nothing(tmp_path):
    one = load("1_shot_eng", cache_dir=str(tmp_path / "one"))
    two = load("1_shot_eng", cache_dir=str(tmp_path / "two"), num_proc=2)
    streamed = load("1_shot_eng", streaming=True)
    for split in ("train", "ood_lexical"):
        rows = one[split].to_list()
        assert rows == two[split].to_list()
        assert rows == list(streamed[split])


def test_seeds_have_their_own_prompts():
    one, two = (load("1_shot_rlw", seed=s)["test"]["prompt"][:] for s in (0, 1))
    assert not set(one) & set(two)


def test_a_single_row_is_enough():
    assert {len(rows) for rows in load("10_shot_rlw", num_train=1, num_eval=1).values()} == {1}


def test_the_cache_knows_the_code_of_the_grammar():
    sources = local_datasets._project_sources("hf_mech.dataset_builders.templatic_generation")
    for module in ("grammar", "tasks"):
        assert f"hf_mech.programs.templatic.{module}" in sources
    assert {"hf_mech.dataset_builders._base", "hf_mech.data.shards", "hf_mech.data.random_numbers"} <= set(sources)
    assert NAME in local_datasets.local_dataset_names()


def test_it_can_be_exported_and_loaded_without_the_builder(tmp_path):
    builder = TemplaticGeneration(config_name="1_shot_rlw", num_train=30, num_eval=10)
    export_dataset(builder, tmp_path)
    loaded = load_dataset(str(tmp_path), "1_shot_rlw")
    assert list(loaded) == list(SPLITS)
    assert loaded["dev"].to_list() == builder.as_dataset("dev").to_list()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_train": 0}, r"num_train must be a whole number, 1 or more, or None, got 0"),
        ({"num_eval": 2.5}, r"num_eval must be .*got 2\.5"),
        ({"seed": -1}, r"seed must be a whole number, 0 or more, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ProgramsError, match=message):
        load("1_shot_rlw", **changes)


def test_an_unknown_task_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"'4_shot_rlw' not found.*5_shot_rlw"):
        load("4_shot_rlw")
    with pytest.raises(ProgramsError, match="task must be one of"):
        TemplaticSettings("4_shot_rlw")


# -------------------------------------------------------------------------------------------- the published data set

PUBLISHED_ROW = ("Q ZW A ZW . Q VI A", "VI .", '{"type": "echo"}')  # Sec. 4.2.1


@pytest.fixture
def copy_of_the_published(tmp_path):
    """A folder laid out as the data set on the Hub is: a folder a task, a file of JSON lines a split."""

    def write(names):
        configs = ["---", "configs:"]
        for task in ("1_shot_rlw", "1_shot_eng"):
            (tmp_path / task).mkdir()
            configs += [f"- config_name: {task}", "  data_files:"]
            for split in ("train", "test"):
                configs += [f"  - split: {split}", f"    path: {task}/{split}.*"]
                row = json.dumps(dict(zip(names, PUBLISHED_ROW, strict=True)))
                (tmp_path / task / f"{split}.jsonl").write_text(row + "\n")
        (tmp_path / "README.md").write_text("\n".join([*configs, "---", ""]))
        return str(tmp_path)

    return write


@pytest.mark.parametrize("names", [("prompt", "completion", "info"), ("text", "label", "annotation")])
def test_the_published_data_set_has_the_same_columns(names, copy_of_the_published):
    path, wanted = copy_of_the_published(names), dict(zip(("prompt", "completion", "info"), PUBLISHED_ROW, strict=True))
    splits = load_published("1_shot_rlw", path)
    assert {split: rows.to_list() for split, rows in splits.items()} == {"train": [wanted], "test": [wanted]}
    test = load_published("1_shot_rlw", path, split="test")
    assert test.column_names == load("1_shot_rlw", split="test").column_names
    assert list(load_published("1_shot_eng", path, split="test", streaming=True)) == [wanted]


def test_other_columns_are_refused(copy_of_the_published):
    path = copy_of_the_published(("input", "label", "info"))
    with pytest.raises(ProgramsError, match=r"column prompt or text, got input, label, info"):
        load_published("1_shot_rlw", path)
    with pytest.raises(ProgramsError, match="task must be one of"):
        load_published("4_shot_rlw", path)
