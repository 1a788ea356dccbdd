"""From parts to figures: every prompt counts, and parts that do not belong together are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.pargen.conftest import ORIGIN
from training.engine import SettingsError
from training.engine.main import finished_runs
from training.pargen.experiment import EXPERIMENT
from training.pargen.report import measurements, table_of
from training.pargen.run import Part, PartOutcome


def outcomes_with(part: Part, *exact: int) -> list[PartOutcome]:
    """Parts of 1,000 prompts of which so many are right."""
    return [
        PartOutcome(
            settings=replace(part, start=1000 * number, stop=1000 * (number + 1)),
            origin=ORIGIN,
            seconds=1.0,
            prompts=1000,
            exact=right,
            longest=60,
            wrong=[],
            cpu_seconds=1.0,
        )
        for number, right in enumerate(exact)
    ]


def test_one_wrong_prompt_is_never_rounded_away(part: Part):
    (entry,) = measurements(outcomes_with(part, 1000, *[1000] * 33, 999))
    assert entry.mean == 34_999 / 35_000
    assert entry.paper is not None
    assert entry.paper.mean == 1.0
    _, _, row, *_ = table_of([entry]).markdown().splitlines()
    assert row == "| pargen | 1_shot_rlw | 35,000 | 1 |  |  | 99.99 |" + "  |" * 9
    assert table_of([entry]).markdown().endswith("Every prompt of every split shown.")


def test_the_table_is_followed_by_the_wrong_completions(part: Part):
    (outcome,) = outcomes_with(part, 999)
    outcome.wrong = [{"index": 3, "prompt": "Q a A", "expected": "a .", "got": "b ."}]
    printed = str(EXPERIMENT.table([outcome]))
    assert "| pargen | 1_shot_rlw | 1,000 | 1 |" in printed
    assert printed.endswith("\n\n1_shot_rlw test 3: `Q a A`, expected `a .`, got `b .`")


def finished(folder: Path, outcomes: Sequence[PartOutcome]) -> dict[Path, PartOutcome]:
    """The outcomes as the command finds them in its folder."""
    for outcome in outcomes:
        own = folder / outcome.settings.name
        own.mkdir(parents=True, exist_ok=True)
        outcome.save(own)
    (found,) = finished_runs(EXPERIMENT, [outcomes[0].settings], folder)
    return found


def test_the_parts_of_a_program_are_found_in_their_order(part: Part, tmp_path: Path):
    outcomes = outcomes_with(part, 1000, 999, 1000)
    assert list(finished(tmp_path, outcomes[::-1]).values()) == outcomes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program_digest": "another"}, "of 2 texts of the program"),
        ({"seed": 1}, "of 2 seeds"),
        ({"start": 999}, "share prompts"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    part: Part, change: dict[str, object], message: str, tmp_path: Path
):
    first, second = outcomes_with(part, 1000, 1000)
    second.settings = replace(second.settings, **change)
    found = finished(tmp_path, [first, second])
    assert len(found) == 2
    with pytest.raises(SettingsError, match=message):
        EXPERIMENT.card(found)
