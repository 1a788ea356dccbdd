"""Corpora: the standard library, data sets and files, each with splits that hold text."""

from __future__ import annotations

from pathlib import Path

import pytest

from hf_mech.languages import LanguagesError
from hf_mech.languages.corpora import Corpus, file_corpus, hub_corpus, stdlib_corpus
from tests.languages.text.programs import SPLITS

MODULES = [f"module{number}.py" for number in range(80)]


def library(folder: Path, names: list[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")
    return folder


def test_every_file_of_the_library_is_in_one_split_whatever_the_order(tmp_path: Path):
    names = [*MODULES, "package/deep/inner.py"]
    first = stdlib_corpus(library(tmp_path / "first", names))
    again = stdlib_corpus(library(tmp_path / "again", names[::-1]))
    assert first == again
    assert set(first.splits) == {*SPLITS, "pretraining"}
    assert sorted(document for split in first.splits.values() for document in split) == sorted(
        f"# {name}\n" for name in names
    )
    assert len(first.splits["train"]) > 2 * len(first.splits["test"]) > 0


def test_a_new_file_moves_no_other(tmp_path: Path):
    first = stdlib_corpus(library(tmp_path, MODULES))
    more = stdlib_corpus(library(tmp_path, ["newer.py"]))
    for split, documents in first.splits.items():
        assert [document for document in more.splits[split] if document != "# newer.py\n"] == documents
    assert more.digest != first.digest


def test_tests_packages_and_files_of_the_machine_are_left_out(tmp_path: Path):
    plain = stdlib_corpus(library(tmp_path, MODULES))
    unwanted = ["test/a.py", "json/tests/b.py", "site-packages/c/d.py", "encodings/e.py", "_sysconfigdata_x.py"]
    library(tmp_path, [*unwanted, "idlelib/idle_test/f.py", "config-3.11/g.py"])
    (tmp_path / "empty.py").write_text("\n")
    (tmp_path / "notes.txt").write_text("no program\n")
    assert stdlib_corpus(tmp_path) == plain


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path):
    library(tmp_path, MODULES)
    (tmp_path / "module0.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    documents = [document for split in stdlib_corpus(tmp_path).splits.values() for document in split]
    assert any("name = 'é'" in document for document in documents)


def test_the_library_of_this_python(tmp_path: Path):
    found = stdlib_corpus(max_characters=50_000)
    sizes = {split: sum(map(len, documents)) for split, documents in found.splits.items()}
    assert sizes.pop("train") == 50_000
    assert min(sizes.values()) > 100_000
    assert found.config is not None
    assert found.config.startswith("python-3.")
    whole, reduced = (stdlib_corpus(library(tmp_path, MODULES), max_characters=most) for most in (None, 100))
    assert "".join(reduced.splits.pop("train")) == "".join(whole.splits.pop("train"))[:100]
    assert reduced.splits == whole.splits


def test_a_split_without_text_is_refused():
    with pytest.raises(LanguagesError, match=r"no text for the split 'test'.*2 for test"):
        Corpus.of("empty", None, {"train": ["a"], "validation": ["b"], "test": ["", "\n"]})


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path):
    with pytest.raises(LanguagesError, match=r"No such file for the split 'train': .*gone\.txt"):
        file_corpus({"train": [str(tmp_path / "gone.txt")]})


def test_a_data_set_without_text_is_refused(tmp_path: Path):
    for split in SPLITS:
        (tmp_path / f"{split}.jsonl").write_text('{"words": "a b"}\n')
    with pytest.raises(LanguagesError, match="no column of text: expected text or sentence, got words"):
        hub_corpus(str(tmp_path))
