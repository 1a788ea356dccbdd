"""From outcomes to figures: seeds of one setting together, other settings apart."""

from __future__ import annotations

from typing import Any

from training.language_models.report import SCORE, curves_of, measurements, table3
from training.language_models.run import RunOutcome
from training.language_models.settings import Run

DATA = {"corpus": "text", "config": None, "digest": "0" * 64, "vocabulary": 300, "blocks": {"train": 9}}


def outcome(perplexity: float, seed: int, form: str = "stack", **overrides: Any) -> RunOutcome:
    run = Run.of("cpu", overrides, objective="clm", start="scratch", form=form, seed=seed, data="data")
    return RunOutcome(
        settings=run,
        origin={},
        seconds=1.0,
        data=DATA,
        parameters=1,
        steps=2,
        epochs=2,
        perplexity_before=300.0,
        validation_perplexity=[perplexity + 1, perplexity],
        best_epoch=2,
        test_perplexity=perplexity,
        logits_difference=None,
    )


OUTCOMES = [
    outcome(10.0, 0),
    outcome(12.0, 1),
    outcome(20.0, 0, form="vanilla"),
    outcome(30.0, 0, layers=1),
    outcome(50.0, 1, layers=1),
    outcome(70.0, 0, multi_pop=2),
]


def test_only_seeds_share_a_figure():
    scores = [entry for entry in measurements(OUTCOMES) if entry.metric == SCORE]
    assert [(m.setting["form"], m.setting["multi_pop"], m.setting.get("departures"), m.values) for m in scores] == [
        ("vanilla", 1, None, [20.0]),
        ("stack", 1, None, [10.0, 12.0]),
        ("stack", 1, {"layers": 1}, [30.0, 50.0]),
        ("stack", 2, None, [70.0]),
    ]


def test_a_row_names_what_differs():
    assert table3(measurements(OUTCOMES)).rows == [
        ["from scratch", "ALM", "20.00 ± 0.00", "11.00 ± 1.00", ""],
        ["from scratch, layers 1", "ALM", "", "40.00 ± 10.00", ""],
        ["from scratch, 2 pops", "ALM", "", "70.00 ± 0.00", ""],
    ]


def test_so_does_a_panel():
    titles = [axes.get_title(loc="left") for axes in curves_of(OUTCOMES).axes]
    assert [title for title in titles if title] == [
        "ALM, from scratch",
        "ALM, from scratch, layers 1",
        "ALM, from scratch, multi_pop 2",
    ]
    alone = curves_of([OUTCOMES[3], OUTCOMES[4]]).axes
    assert [axes.get_title(loc="left") for axes in alone] == ["ALM, from scratch"]
