"""Tables 1 and 2 and the recurrent baselines in docs/results are the cards' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hf_mech.hub import PaperFigure, Results, measurement
from training.formal_languages.tables import (
    context_sensitive_table,
    recurrent_table,
    summary,
    table1,
    table2,
    taught_table,
)


def save(cards: Path, name: str, *entries: Any) -> None:
    (cards / name).mkdir()
    Results.collect(name, seconds=1.0, results=entries).save(cards / name / "results.json")


def entry(task: str, model: str, values: list[float], paper: PaperFigure | None = None, **setting: Any) -> Any:
    metric = setting.pop("metric", "token_accuracy")
    settings = {"layout": "mlm", "model": model, "encoding": "none", "preset": "cpu", "steps": 1000}
    setting = settings | {"steps_done": [900, 1000]} | setting
    return measurement("hf_mech/formal_languages", task, setting, metric, values, paper)


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


def test_the_table_of_encodings(tmp_path: Path) -> None:
    """Beside ours stands Table 2's figure, also where Table 1 has another one for the same model."""
    paper = PaperFigure(0.504, 0.001, "Table 1; Table 2b: 64.9 ± 2.0 %")
    other = PaperFigure(0.705, 0.016, "Table 2b")
    save(
        tmp_path,
        "stack-stack-manipulation",
        entry("stack_manipulation", "vanilla", [0.6, 0.5], paper, layout="alm", steps_done=[4500, 4500]),
        entry("stack_manipulation", "vanilla", [0.7], other, layout="alm", encoding="alibi"),
        entry("stack_manipulation", "stack", [1.0], PaperFigure(0.931, 0.044, "Table 1")),
    )
    table = table2(tmp_path)
    assert table.columns[3:8] == [">none", ">sinusoidal", ">relative", ">rotary", ">alibi"]
    assert table.rows == [
        ["stack_manipulation", "alm", "vanilla", "55.0 (64.9)", "", "", "", "70.0 (70.5)", "900 to 4,500"]
    ]


def test_the_table_of_recurrent_baselines(tmp_path: Path) -> None:
    save(
        tmp_path,
        "stack-reverse-string",
        entry("reverse_string", "rnn", [0.8, 0.6], PaperFigure(0.81, 0.008, "Table 1"), steps=2000),
        entry("reverse_string", "rnn", [0.5], PaperFigure(0.81, 0.008, "Table 1")),
        entry("reverse_string", "stack_rnn", [0.9], PaperFigure(1.0, 0.0, "Table 1")),
        entry("reverse_string", "stack", [1.0], PaperFigure(1.0, 0.0, "Table 1")),
    )
    assert recurrent_table(tmp_path).rows == [
        ["reverse_string", "50.0 ± 0.0", "81.0 ± 0.8", "90.0 ± 0.0", "100.0 ± 0.0", "1", "1,000"],
        ["reverse_string", "70.0 ± 10.0", "81.0 ± 0.8", "", "", "2", "2,000"],
    ]


def test_the_summary_calls_fewer_steps_than_the_papers_reduced(tmp_path: Path) -> None:
    paper = PaperFigure(0.343, 0.014, "Table 1")
    for steps in (100_000, 1_000_000):
        cards = tmp_path / str(steps)
        cards.mkdir()
        both = [
            entry("modular_arithmetic", model, [0.3], paper, preset="paper", steps=steps)
            for model in ("stack", "vanilla")
        ]
        save(cards, "stack-modular-arithmetic-paper", *both)
    assert [summary(tmp_path / name)[0][-1] for name in ("100000", "1000000")] == ["at most 100,000 steps", "no"]


def test_the_summary_shows_the_setting_of_most_steps(tmp_path: Path) -> None:
    paper = PaperFigure(0.343, 0.014, "Table 1")
    for preset, steps, accuracy in (("paper", 100_000, 0.3), ("cpu", 2_000, 0.2)):
        trained = {"preset": preset, "steps": steps}
        both = (entry("modular_arithmetic", model, [accuracy], paper, **trained) for model in ("stack", "vanilla"))
        save(tmp_path, f"stack-modular-arithmetic-{preset}", *both)
    save(tmp_path, "stack-solve-equation-paper", entry("solve_equation", "stack", [0.9], paper, steps=100_000))
    assert [(name.split()[-1], ours) for name, _, ours, *_ in summary(tmp_path)] == [
        ("`modular_arithmetic`", "30.0 ± 0.0 (30.0)")  # no row without a vanilla model beside the stack
    ]


def test_the_table_of_taught_models(tmp_path: Path) -> None:
    """A seed is counted as one that solves its task from 98 % on; tasks stand in the paper's order, others behind."""
    longest = "token_accuracy_at_longest"
    save(
        tmp_path,
        "stack-parity-check-taught",
        entry("parity_check", "recurrent_stack", [0.5]),
    )
    save(
        tmp_path,
        "stack-modular-arithmetic-taught",
        entry("modular_arithmetic", "recurrent_stack", [1.0, 0.97]),
        entry("modular_arithmetic", "recurrent_stack", [0.9, 0.8], metric=longest),
        entry("modular_arithmetic", "vanilla", [0.25]),
    )
    save(tmp_path, "stack-modular-arithmetic", entry("modular_arithmetic", "rnn", [0.1], PaperFigure(0.7, 0.0, "1")))
    table = taught_table(tmp_path)
    assert [column.removeprefix(">") for column in table.columns] == [
        *("task", "layout", "recurrent stack", "seeds at 98 %", "recurrent stack, length 500", "vanilla"),
        *("seeds", "steps"),
    ]
    assert table.rows == [
        ["modular_arithmetic", "mlm", "98.5 ± 1.5", "1 of 2", "85.0 ± 5.0", "25.0", "2/1", "900 to 1,000"],
        ["parity_check", "mlm", "50.0", "0 of 1", "", "", "1", "900 to 1,000"],
    ]


def test_the_summary_shows_taught_models_where_the_papers_stack_is_right_too_seldom(tmp_path: Path) -> None:
    for task, stack in {"reverse_string": 1.0, "modular_arithmetic": 0.3}.items():
        both = (entry(task, model, [stack], PaperFigure(1.0, 0.0, "Table 1")) for model in ("stack", "vanilla"))
        save(tmp_path, f"stack-{task}", *both)
        taught = (entry(task, model, [0.99]) for model in ("recurrent_stack", "vanilla"))
        save(tmp_path, f"stack-{task}-taught", *taught)
    rows = summary(tmp_path)
    assert ["recurrent" in name for name, *_ in rows] == [False, False, True]
    assert "`modular_arithmetic`" in rows[-1][0]
    assert rows[-1][2] == "99.0 ± 0.0 (99.0)"


def test_the_table_of_context_sensitive_tasks(tmp_path: Path) -> None:
    """One stack beside two, on the trained lengths and beyond; these tasks have no row among the taught ones."""
    trained = "token_accuracy_at_trained_lengths"
    save(
        tmp_path,
        "stack-odds-first-taught",
        entry("odds_first", "recurrent_stack", [0.5]),
        entry("odds_first", "recurrent_stack", [0.75], metric=trained),
        entry("odds_first", "recurrent_stack", [0.625], num_hidden_layers=2),
        entry("odds_first", "vanilla", [0.25]),
    )
    save(tmp_path, "stack-parity-check-taught", entry("parity_check", "recurrent_stack", [0.5]))
    assert context_sensitive_table(tmp_path).rows == [["odds_first", "75.0", "50.0", "", "62.5", "1", "900 to 1,000"]]
    assert [row[0] for row in taught_table(tmp_path).rows] == ["parity_check"]
