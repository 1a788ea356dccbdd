"""Nested functions by `load_dataset`: configurations, splits, sizes."""

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.nested_functions.calls import SPLITS
from hf_mech.programs.nested_functions.grammar import NestedFunctionSettings, generate, generate_rows

NAME = "hf_mech/nested_functions"


@pytest.mark.parametrize("config", ["rlw", "small", "single"])
def test_every_configuration_loads_with_its_splits(config):
    splits = load_dataset(NAME, config, num_train=70, num_eval=20, seed=1)
    assert {split: len(rows) for split, rows in splits.items()} == {s: 70 if s == "train" else 20 for s in SPLITS}
    for split, rows in splits.items():
        wanted = generate(config, split, seed=1, stop=len(rows))
        assert rows.to_list() == [{"prompt": e.prompt, "completion": e.completion, "info": e.info} for e in wanted]


def test_the_whole_sizes_are_those_of_the_splits():
    settings = NestedFunctionSettings("rlw")
    assert {name: settings.rows(name) for name in SPLITS} == {name: split.size for name, split in SPLITS.items()}
    few = NestedFunctionSettings("rlw", num_eval=50)
    tables = [table for shard in range(16) for table in generate_rows(few, "ood_depth_3", shard)]
    assert sum(map(len, tables)) == 50


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
        load_dataset(NAME, "rlw", **changes)
