"""The tables of the README and of docs/results are made of the cards' results."""

from __future__ import annotations

from pathlib import Path

import pytest

from training import render_readme

OLD = "before\n<!-- begin a-1: rendered -->\nold\n<!-- end a-1 -->\nafter\n"


def test_without_cards_there_are_no_tables(tmp_path: Path) -> None:
    tables = render_readme.tables_of(tmp_path)
    assert len(tables) >= 6
    assert set(tables.values()) == {""}


def test_a_table_goes_between_its_marks() -> None:
    rendered = render_readme.render(OLD, {"a-1": "new", "b": "other"})
    assert rendered == OLD.replace("old", "new")
    assert render_readme.render(rendered, {"a-1": "new"}) == rendered
    with pytest.raises(ValueError, match="No experiment gives a table 'a-1'; there are b"):
        render_readme.render(OLD, {"b": "other"})


def test_what_is_out_of_date_is_said_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render_readme, "tables_of", lambda _: {"a-1": "new"})
    page = tmp_path / "docs" / "results" / "page.md"
    page.parent.mkdir(parents=True)
    page.write_text("nothing rendered\n")
    (tmp_path / "README.md").write_text(OLD)
    monkeypatch.setattr("sys.argv", ["render_readme", "--check"])
    assert render_readme.main(tmp_path) == 1
    assert capsys.readouterr().out == "Out of date: README.md. Run: python -m training.render_readme\n"
    assert (tmp_path / "README.md").read_text() == OLD
    monkeypatch.setattr("sys.argv", ["render_readme"])
    assert render_readme.main(tmp_path) == 0
    assert (tmp_path / "README.md").read_text() == OLD.replace("old", "new")
    (tmp_path / "README.md").write_text("no marks\n")
    with pytest.raises(ValueError, match="No file has marks for the tables a-1"):
        render_readme.main(tmp_path)
