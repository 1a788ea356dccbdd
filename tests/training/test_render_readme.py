"""The tables of the README and of docs/results are made of the cards' results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from training import render_readme

ROOT = Path(__file__).parents[2]


def test_without_cards_there_are_no_tables(tmp_path: Path) -> None:
    tables = render_readme.tables_of(tmp_path)
    assert len(tables) >= 6
    assert set(tables.values()) == {""}


def test_a_table_goes_between_its_marks() -> None:
    text = "before\n<!-- begin a-1: rendered -->\nold\n<!-- end a-1 -->\nafter\n"
    rendered = render_readme.render(text, {"a-1": "new", "b": "other"})
    assert rendered == text.replace("old", "new")
    assert render_readme.render(rendered, {"a-1": "new"}) == rendered
    with pytest.raises(ValueError, match="No experiment gives a table 'a-1'; there are b"):
        render_readme.render(text, {"b": "other"})


def test_what_is_out_of_date_is_said_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("model_cards", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.png"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(text.replace("4,956,000 of 4,956,000", "all"), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["render_readme", "--check"])
    assert render_readme.main(tmp_path) == 1
    assert capsys.readouterr().out == "Out of date: README.md. Run: python -m training.render_readme\n"
    monkeypatch.setattr("sys.argv", ["render_readme"])
    assert render_readme.main(tmp_path) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text
    (tmp_path / "docs" / "results" / "strips.md").write_text("no marks\n")
    with pytest.raises(
        ValueError, match="No file has marks for the tables strips-assumptions, strips-larger, strips-table-1"
    ):
        render_readme.main(tmp_path)
