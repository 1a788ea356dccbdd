"""How deep expressions are nested, and the score of evaluating so many levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.formal_languages.run import _examples, accuracy_of_levels, nesting

README = Path(__file__).parents[3] / "hf_mech" / "models" / "stack" / "README.md"


@pytest.mark.parametrize(
    ("expression", "levels"),
    [("3", 0), ("-3", 0), ("(-3)", 0), ("(1+2)", 1), ("((-1)+2)", 1), ("((1+2)*3)", 2), ("(1-((2*3)+(4-x)))=2", 3)],
)
def test_how_deep_an_expression_is_nested(expression: str, levels: int):
    assert nesting(list(expression)) == levels


@pytest.mark.parametrize(("task", "four", "five"), [("modular_arithmetic", 34.6, 49.2), ("solve_equation", 26.0, 44.2)])
def test_the_score_of_levels(task: str, four: float, five: float):
    """Each level adds to the score, all of them make it 1, none is the most frequent answer; so says the README."""
    worth = [accuracy_of_levels(task, levels) for levels in (0, 4, 5, 6, 99)]
    assert worth == sorted(worth)
    assert worth[-1] == 1
    assert [round(100 * share, 1) for share in worth[1:3]] == [four, five]
    readme = README.read_text()
    assert f"{four} %" in readme
    assert str(five) in readme
    answers = _examples(task)[1]
    assert worth[0] == pytest.approx(max((answers == answer).mean() for answer in range(5)))
