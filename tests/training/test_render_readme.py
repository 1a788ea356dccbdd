"""The tables of the README and of docs/results are made of the cards' results."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hf_mech.hub import PaperFigure, Results, measurement
from training import render_readme
from training.formal_languages.report import table1

ROOT = Path(__file__).parents[2]


def save(cards: Path, name: str, *entries: Any) -> None:
    (cards / name).mkdir()
    Results.collect(name, seconds=1.0, results=entries).save(cards / name / "results.json")


def entry(task: str, model: str, values: list[float], paper: PaperFigure | None, **setting: Any) -> Any:
    settings = {"layout": "mlm", "model": model, "encoding": "none", "preset": "cpu", "steps": 1000}
    setting = settings | {"steps_done": [900, 1000]} | setting
    return measurement("hf_mech/formal_languages", task, setting, "token_accuracy", values, paper)


def test_the_stack_table(tmp_path: Path) -> None:
    paper = PaperFigure(0.931, 0.044, "Table 1")
    save(
        tmp_path,
        "stack-stack-manipulation",
        entry("stack_manipulation", "stack", [1.0, 0.9], paper),
        entry("stack_manipulation", "stack", [0.1], paper, encoding="alibi"),
        entry("stack_manipulation", "stack", [0.2], None, multi_pop=2),
    )
    save(
        tmp_path,
        "stack-reverse-string",
        entry("reverse_string", "vanilla", [0.5], PaperFigure(0.548, 0.0, "Table 1")),
        entry("reverse_string", "stack", [1.0], PaperFigure(1.0, 0.0, "Table 1")),
        entry("reverse_string", "rnn", [0.8], PaperFigure(0.81, 0.008, "Table 1")),
    )
    save(tmp_path, "stack-lm-texts", measurement("text", None, {"model": "stack"}, "perplexity", [2.0]))
    _, _, *rows = table1(tmp_path).markdown().splitlines()
    assert rows == [
        "| reverse_string | mlm | 100.0 ± 0.0 | 100.0 ± 0.0 | 50.0 ± 0.0 | 54.8 ± 0.0 | 1 | cpu | 900 to 1,000 |",
        "| stack_manipulation | mlm | 95.0 ± 5.0 | 93.1 ± 4.4 |  |  | 2 | cpu | 900 to 1,000 |",
    ]


def test_two_figures_for_one_cell_are_refused(tmp_path: Path) -> None:
    paper = PaperFigure(1.0, 0.0, "Table 1")
    twice = [entry("reverse_string", "stack", [1.0], paper, learning_rate=rate) for rate in (1e-3, 1e-4)]
    save(tmp_path, "stack-reverse-string", *twice)
    with pytest.raises(ValueError, match=r"has two figures for .*reverse_string.* after 1000 steps"):
        table1(tmp_path)


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
