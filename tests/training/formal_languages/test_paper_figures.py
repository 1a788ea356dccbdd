"""The paper's figures stand beside the runs that they belong to, and beside no others."""

from __future__ import annotations

import pytest

from tests.training.formal_languages.small import outcome_of, run_of
from training.formal_languages.tables import Group, paper_figure, paper_figure_beside


@pytest.mark.parametrize(
    ("task", "group", "mean", "where"),
    [
        ("stack_manipulation", ("mlm", "stack", "none", "{}"), 0.931, "Table 1"),
        ("stack_manipulation", ("alm", "vanilla", "none", "{}"), 0.504, "Table 1; Table 2b: 64.9 ± 2.0 %"),
        ("solve_equation", ("mlm", "stack", "rotary", "{}"), 0.30, "Table 2a"),
        ("solve_equation", ("mlm", "stack_rnn", "none", '{"steps": 5}'), 0.899, "Table 1"),
    ],
)
def test_the_papers_figures(task: str, group: Group, mean: float, where: str):
    figure = paper_figure(task, group)
    assert figure is not None
    assert (figure.mean, figure.where) == (pytest.approx(mean), where)


@pytest.mark.parametrize(
    ("task", "group"),
    [
        ("reverse_string", ("mlm", "stack", "none", '{"multi_pop": 2}')),
        ("reverse_string", ("mlm", "stack", "none", '{"max_train_length": 13}')),
        ("reverse_string", ("mlm", "stack", "learned", "{}")),
        ("parity_check", ("mlm", "stack", "none", "{}")),
    ],
)
def test_other_models_and_tasks_have_no_figure_of_the_paper(task: str, group: Group):
    assert paper_figure(task, group) is None


def test_where_more_is_taught_than_in_the_paper_no_figure_of_it_compares():
    for model in ("rnn", "stack"):
        as_in_the_paper = outcome_of(run_of("modular_arithmetic", model=model))
        taught = outcome_of(run_of("modular_arithmetic", model=model, partial_results=True))
        group = ("mlm", model, "none", "{}")
        assert paper_figure_beside("modular_arithmetic", group, [as_in_the_paper]) is not None
        assert paper_figure_beside("modular_arithmetic", group, [taught]) is None
