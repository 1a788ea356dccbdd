"""Runs that differ in their seeds alone stand together, beside the paper's figure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hf_mech.hub import PaperFigure

from ..engine.tables import percent
from .run import RunOutcome
from .settings import ENCODINGS, LAYOUTS, MODELS, PAPER, PAPERS_TASKS

SCORE = "token_accuracy"
LONGEST = f"{SCORE}_at_longest"
"""Of the longest texts, where they are longer than those of the score."""

Group = tuple[str, str, str, str]
"""Layout, model, encoding, and the departures from the preset, as JSON: runs that differ in their seeds alone."""

NOT_THE_PAPERS = ("multi_pop", "stack_gate", "stack_actions_from", "num_hidden_layers", "max_train_length")
"""Departures that make another model, or another task, of a run: it stands beside no figure of the paper."""


def grouped(outcomes: Iterable[RunOutcome]) -> dict[Group, list[RunOutcome]]:
    """The runs that differ in their seeds alone, together, in the order of the tables."""
    groups: dict[Group, list[RunOutcome]] = {}
    for outcome in sorted(outcomes, key=order):
        run = outcome.settings
        departures = json.dumps(run.departures, sort_keys=True)
        groups.setdefault((run.layout, run.model, run.encoding, departures), []).append(outcome)
    return groups


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """The order of the tables."""
    run = outcome.settings

    def place(value: str, values: tuple[str, ...]) -> int:
        return values.index(value) if value in values else len(values)

    departures = json.dumps(run.departures, sort_keys=True) if run.departures else ""
    task = (place(run.task, PAPERS_TASKS), run.task, place(run.encoding, ENCODINGS))
    return *task, departures, LAYOUTS.index(run.layout), MODELS.index(run.model), run.seed


def paper_figure(task: str, group: Group) -> PaperFigure | None:
    """The paper's figure, as a share: of Table 1 where there is no encoding, else of Table 2.

    Where Table 2 says otherwise of a cell of Table 1, `where` says so.
    """
    layout, model, encoding, departures = group
    if any(name in json.loads(departures) for name in NOT_THE_PAPERS):
        return None
    found = PAPER.figures(SCORE, task=task, layout=layout, model=model, encoding=encoding)
    if not found:
        return None
    first, *others = found
    other = "".join(f"; {o.where}: {percent(o)} %" for o in others if (o.mean, o.std) != (first.mean, first.std))
    return PaperFigure(first.mean, first.std, first.where + other)


def paper_figure_beside(task: str, group: Group, members: list[RunOutcome]) -> PaperFigure | None:
    """The figure of the paper that compares with these runs, if any: none where more was taught than in the paper."""
    return None if members[0].settings.is_taught else paper_figure(task, group)


def accuracy_by_length(members: list[RunOutcome]) -> dict[str, list[float]]:
    """The accuracy of every seed at each length."""
    return {length: [o.accuracy_by_length[length] for o in members] for length in members[0].accuracy_by_length}
