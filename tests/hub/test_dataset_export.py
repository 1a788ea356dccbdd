"""A builder's output as Parquet and card, locally and on the Hub."""

from pathlib import Path

import datasets
import pytest
from huggingface_hub import DatasetCard, HfApi

from hf_mech.hub import PushError, export_dataset, push_dataset
from tests.hub.local_hub import LocalHub
from tests.hub.toy_dataset import CITATION, ToyDataset

REPO = "tester/toy_data"


def _builder(name: str, cache: Path) -> ToyDataset:
    return ToyDataset(config_name=name, cache_dir=str(cache))


def test_an_export_loads_as_it_was_built(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    for name in ("small", "large"):
        export_dataset(_builder(name, tmp_path / "cache"), folder)
    for name, rows in (("small", 10), ("large", 100)):
        built = _builder(name, tmp_path / "cache").as_dataset()
        loaded = datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "other"))
        assert loaded.keys() == {"train", "test"}
        assert loaded["train"].num_rows == rows
        assert loaded["train"].features == built["train"].features
        assert all(loaded[split].to_list() == built[split].to_list() for split in built)
    text = (folder / "README.md").read_text()
    assert CITATION in text
    assert "Numbers and their parity." in text


def test_a_second_export_leaves_no_stale_file(tmp_path: Path) -> None:
    export_dataset(_builder("small", tmp_path / "cache"), tmp_path / "export")
    stale = tmp_path / "export" / "small" / "train-00001-of-00002.parquet"
    stale.write_bytes(b"")
    export_dataset(_builder("small", tmp_path / "cache"), tmp_path / "export")
    assert sorted(p.name for p in stale.parent.iterdir()) == [
        "test-00000-of-00001.parquet",
        "train-00000-of-00001.parquet",
    ]


def test_each_push_is_one_commit_and_keeps_the_other_configurations(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    push_dataset(_builder("small", tmp_path / "cache"), REPO, api=api)
    push_dataset(_builder("large", tmp_path / "cache"), REPO, api=api)
    head, *earlier = hub.repository(REPO, "dataset").history()
    assert [head.title, *(c.title for c in earlier)] == ["Upload large", "Upload small", "init"]
    card = DatasetCard(head.files["README.md"].data.decode())
    assert [entry["config_name"] for entry in card.data.configs] == ["large", "small"]
    assert [entry["config_name"] for entry in card.data.dataset_info] == ["large", "small"]
    assert CITATION in card.text
    assert {name.split("/")[0] for name in head.files} == {".gitattributes", "README.md", "small", "large"}


def test_a_failed_push_leaves_the_last_good_commit(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    first = push_dataset(_builder("small", tmp_path / "cache"), REPO, api=api)
    hub.fail("PUT", "/_lfs/", "close", times=99)
    with pytest.raises(PushError, match=f"still holds its last good commit {first.oid}"):
        push_dataset(_builder("large", tmp_path / "cache"), REPO, api=api)
    assert hub.repository(REPO, "dataset").history()[0].sha == first.oid


def test_a_card_that_cannot_be_read_stops_the_push(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    push_dataset(_builder("small", tmp_path / "cache"), REPO, api=api)
    hub.fail("GET", f"/api/datasets/{REPO}", 403, times=99)
    with pytest.raises(PushError, match="Nothing was sent"):
        push_dataset(_builder("large", tmp_path / "cache"), REPO, api=api)
    assert len(hub.repository(REPO, "dataset").history()) == 2
