"""The losses of every experiment's first steps stay what they are; of the figures, where nothing is trained.

A change of structure that changes a data set, a model, an optimizer or a random stream fails here within seconds. After
a change that is meant to change them, write `invariants.json` anew, and say so in the commit:

    NEW_INVARIANTS=1 python -m pytest tests/training/test_invariants.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.cases import CASES, Case, few_rows
from training.engine.run import Tracker

FILE = Path(__file__).with_name("invariants.json")
FIRST = 5
TOLERANCE = 1e-5  # relative; processors round differently

SOONER = {"strips": ("--eval_steps", "10", "--redraw_after", "200"), "lm": ("--epochs", "1")}
"""Arguments by experiment that replace those of the case."""


class Enough(BaseException):
    """The first steps are done."""


class Recorder(Tracker):
    """Keeps what a run logs of its training, or all that it logs if it trains nothing, until it is enough."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[dict[str, float]] = []

    def log(self, values: Mapping[str, float], step: int) -> None:
        if "train/loss" in values or not any(name.startswith("eval/") for name in values):
            self.logged.append({"step": step, **values})
        if len(self.logged) == FIRST:
            raise Enough


def first_steps(case: Case, output_dir: Path) -> list[dict[str, float]]:
    """What the first run logs at its first steps."""
    case = replace(case, arguments=(*case.arguments, *SOONER.get(case.experiment.name, ())))
    settings, recorder = case.settings(output_dir), Recorder()
    job = replace(case.job(settings, output_dir), tracker=recorder)
    job.folder.mkdir(parents=True)
    with suppress(Enough):
        case.experiment.train(settings, job)
    return recorder.logged


@pytest.mark.parametrize("name", CASES)
def test_the_first_steps_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    few_rows(name, monkeypatch)
    logged = first_steps(CASES[name], tmp_path)
    assert logged
    if os.environ.get("NEW_INVARIANTS"):
        known: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
        known = {case: known[case] for case in CASES if case in known} | {name: logged}
        FILE.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    pinned = json.loads(FILE.read_text("utf-8"))[name]
    assert len(logged) == len(pinned)
    for got, expected in zip(logged, pinned, strict=True):
        assert got == pytest.approx(expected, rel=TOLERANCE), f"step {expected['step']}"
