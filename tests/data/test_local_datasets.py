"""`load_dataset("hf_mech/...")` does all that `load_dataset` does, and nothing else has changed."""

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import datasets
import datasets.inspect
import datasets.load
import pytest
from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset, load_dataset_builder
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

from hf_mech import dataset_builders
from hf_mech.data import local_datasets
from hf_mech.dataset_builders._base import SeededConfig
from hf_mech.dataset_builders.strips_traces import StripsTraces

ROOT = Path(local_datasets.__file__).parents[1]
NAME = "hf_mech/strips_traces"
SMALL = {"num_train": 60, "num_test": 90}

local_datasets.install()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def key(row) -> tuple[int, ...]:
    return tuple(int(a) for a in row["input_ids"])


# --------------------------------------------------------------------------------------------- the ordinary interface


def test_names_configs_and_splits_are_listed():
    assert NAME in local_datasets.local_dataset_names()
    assert {"simple", "blocksworld-2b", "pddl"} <= set(get_dataset_config_names(NAME))
    assert get_dataset_split_names(NAME, "simple") == ["train", "test"]


def test_one_process_two_processes_and_streaming_agree(tmp_path):
    one = load_dataset(NAME, "simple", **SMALL, cache_dir=tmp_path / "one")
    two = load_dataset(NAME, "simple", **SMALL, cache_dir=tmp_path / "two", num_proc=2)
    stream = load_dataset(NAME, "simple", **SMALL, streaming=True)
    for split in ("train", "test"):
        assert list(one[split]) == list(two[split]) == list(stream[split])
    assert len(one["train"]) == 60
    assert len(one["test"]) == 90


def test_a_data_loader_with_two_workers_gives_each_row_once():
    stream = load_dataset(NAME, "simple", **SMALL, streaming=True, split="train")
    rows = [key(row) for row in DataLoader(stream, batch_size=None, num_workers=2)]
    assert len(rows) == 60
    assert set(rows) == {key(row) for row in stream}


@pytest.mark.parametrize("streaming", [False, True])
def test_two_nodes_share_the_rows(streaming):
    data = load_dataset(NAME, "simple", **SMALL, streaming=streaming, split="train")
    parts = [[key(row) for row in split_dataset_by_node(data, rank=rank, world_size=2)] for rank in (0, 1)]
    assert len(parts[0]) + len(parts[1]) == 60
    assert min(len(part) for part in parts) > 20
    assert {*parts[0], *parts[1]} == {key(row) for row in data}


def test_the_second_load_comes_from_the_cache_and_other_settings_do_not():
    first = load_dataset(NAME, "simple", **SMALL, split="train")
    again = load_dataset(NAME, "simple", **SMALL, split="train")
    other = load_dataset(NAME, "simple", **SMALL, seed=1, split="train")
    assert first.cache_files == again.cache_files != other.cache_files
    assert first._fingerprint == again._fingerprint != other._fingerprint


def test_a_builder_gives_the_hidden_domain():
    assert load_dataset_builder(NAME, "simple").problem.domain.action_names == ("a", "b", "c")


@dataclass(frozen=True)
class Words:
    """The settings of a generator."""

    config: str
    seed: int = 0
    longest: int | None = None
    shape: str = "plain"


def test_a_config_has_the_generators_settings_and_its_own():
    @dataclass
    class WordsConfig(SeededConfig, settings=Words, without=("shape",)):
        longest: int | None = 5

    assert str(inspect.signature(WordsConfig)).endswith("seed: int = 0, longest: int | None = 5) -> None")
    assert WordsConfig("short", seed=3).settings == Words("short", 3, 5)


# ----------------------------------------------------------------------------------------- discovery, and the code hash

TOY_BUILDER = """
import datasets
from ._toy_rows import rows

class Toy(datasets.GeneratorBasedBuilder):
    VERSION = datasets.Version("1.0.0")
    def _info(self):
        return datasets.DatasetInfo(features=datasets.Features({"x": datasets.Value("int64")}))
    def _split_generators(self, dl_manager):
        return [datasets.SplitGenerator(name="train")]
    def _generate_examples(self):
        yield from enumerate(rows())
"""
TOY_ROWS = "def rows():\n    return [{'x': 1}, {'x': 2}]\n"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A builder that somebody drops into the package: toy.py, and _toy_rows.py that it imports."""
    monkeypatch.setattr(dataset_builders, "__path__", [*dataset_builders.__path__, str(tmp_path)])
    (tmp_path / "toy.py").write_text(TOY_BUILDER)
    (tmp_path / "_toy_rows.py").write_text(TOY_ROWS)
    yield tmp_path
    for name in ("toy", "_toy_rows"):
        sys.modules.pop(f"hf_mech.dataset_builders.{name}", None)
    local_datasets.code_hash.cache_clear()


def test_a_new_file_is_a_new_dataset(toy):
    assert "hf_mech/toy" in local_datasets.local_dataset_names()
    assert "hf_mech/_toy_rows" not in local_datasets.local_dataset_names()
    assert load_dataset("hf_mech/toy", split="train")["x"][:] == [1, 2]


@pytest.mark.parametrize("edited", ["toy.py", "_toy_rows.py"])
def test_an_edit_of_the_code_makes_a_new_cache(toy, edited):
    before = load_dataset_builder("hf_mech/toy").cache_dir
    (toy / edited).write_text((toy / edited).read_text() + "\n# edited\n")
    assert load_dataset_builder("hf_mech/toy").cache_dir == before  # this process still runs the old code
    local_datasets.code_hash.cache_clear()  # as a new process has it
    assert load_dataset_builder("hf_mech/toy").cache_dir != before


def test_a_builder_used_directly_has_the_cache_of_load_dataset(monkeypatch):
    def cache_dirs():
        found = load_dataset_builder(NAME, "simple", **SMALL), StripsTraces(config_name="simple", **SMALL)
        return [builder.cache_dir for builder in found]

    loaded, direct = cache_dirs()
    assert loaded == direct
    sources = local_datasets._project_sources
    monkeypatch.setattr(local_datasets, "_project_sources", lambda module: {**sources(module), "edited": b""})
    local_datasets.code_hash.cache_clear()
    edited = cache_dirs()
    monkeypatch.undo()
    local_datasets.code_hash.cache_clear()
    assert edited[0] == edited[1] != direct


def test_the_code_hash_covers_what_the_builder_imports():
    sources = local_datasets._project_sources("hf_mech.dataset_builders.strips_traces")
    assert {"hf_mech.dataset_builders._base", "hf_mech.data.shards", "hf_mech.data.random_numbers"} <= set(sources)
    assert {"hf_mech.planning.traces", "hf_mech.planning.pddl"} <= set(sources)
    assert {"hf_mech.planning.pddl.read", "hf_mech.models.strips.strips_domain"} <= set(sources)
    assert not any(name.endswith(".modeling_strips") for name in sources)  # a change of the model keeps the data
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        local_datasets.code_hash("hf_mech.dataset_builders.no_such")


# ------------------------------------------------------------------------------------------------ what stays as it was


def test_stock_datasets_still_load(tmp_path):
    (tmp_path / "folder").mkdir()
    table = datasets.Dataset.from_dict({"x": [1, 2, 3]})
    table.to_csv(tmp_path / "x.csv")
    table.to_parquet(tmp_path / "folder" / "x.parquet")
    assert load_dataset("csv", data_files=str(tmp_path / "x.csv"), split="train")["x"][:] == [1, 2, 3]
    assert load_dataset(str(tmp_path / "folder"), split="train")["x"][:] == [1, 2, 3]


def test_an_unknown_name_goes_to_the_hub_and_the_error_names_the_local_ones():
    with pytest.raises(ConnectionError, match="hf_mech/no_such") as error:
        load_dataset("hf_mech/no_such")
    assert any(NAME in note for note in error.value.__notes__)


def test_installing_late_or_twice_wraps_once(monkeypatch):
    wrapped = datasets.load.dataset_module_factory
    local_datasets.install()
    assert datasets.load.dataset_module_factory is wrapped
    for module in (datasets.load, datasets.inspect):  # as if both had been imported before us
        monkeypatch.setattr(module, "dataset_module_factory", wrapped.__wrapped__)
    local_datasets.install()
    assert datasets.load.dataset_module_factory is datasets.inspect.dataset_module_factory is not wrapped
    assert datasets.load.dataset_module_factory.__wrapped__ is wrapped.__wrapped__


@pytest.mark.slow
def test_a_fresh_process_needs_import_hf_mech_alone():
    program = f"""
import sys
import hf_mech
assert "datasets" not in sys.modules, "importing hf_mech must not import datasets"
import datasets
print(next(iter(datasets.load_dataset({NAME!r}, "simple", streaming=True, split="train")))["valid"])
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("True", "False")
