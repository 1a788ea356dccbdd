"""The picture of the stack attention on a task's card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.training.formal_languages.small import run_of
from training.formal_languages.figures import example_of, stack_picture
from training.formal_languages.models import make_model


@pytest.mark.parametrize(
    ("task", "layout"), [("stack_manipulation", "alm"), ("solve_equation", "mlm"), ("bucket_sort", "mlm")]
)
def test_every_task_has_its_picture(task: str, layout: str):
    run = run_of(task, layout, num_hidden_layers=2, multi_pop=2)
    model: Any = make_model(run).eval()
    picture = stack_picture(task, model)
    assert picture is not None
    figure, caption = picture
    assert len(figure.axes) == 2
    answer = caption.partition("The model answers: ")[2].split()
    assert len(answer) == example_of(task)[1]
    vanilla: Any = make_model(replace(run, model="vanilla"))
    assert stack_picture(task, vanilla) is None
