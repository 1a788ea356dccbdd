"""The batches of a run are a function of the step, and a paper's figures are found by their setting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.training.cases import CASES
from tests.training.toy.experiment import Batches
from training.engine.loop import batches_from
from training.engine.paper import Paper
from training.formal_languages.models import FreshBatches, Growth
from training.formal_languages.settings import Run

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["toy", "formal_languages"])
def test_batches_of_workers_are_the_same(name: str) -> None:
    run = Run.of("cpu", task="stack_manipulation", layout="alm", model="stack", encoding="none", seed=3)
    batches = Batches(5) if name == "toy" else FreshBatches(run, Growth.of(run))
    state = torch.get_rng_state()
    for alone, beside in zip(batches_from(batches, 2, 5), batches_from(batches, 2, 5, workers=1), strict=True):
        assert all(torch.equal(alone[name], beside[name]) for name in alone)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", [name for name in CASES if (ROOT / "training" / name / "paper.json").exists()])
def test_every_papers_figures_have_one_schema(name: str) -> None:
    file = ROOT / "training" / name / "paper.json"
    paper = Paper(file)
    assert paper.rows
    for row in paper.rows:
        assert row.figure.where
        assert row.setting
        assert paper.figures(row.metric, **row.setting)
    places = [(row.metric, json.dumps(row.setting, sort_keys=True), row.figure.where) for row in paper.rows]
    assert len(set(places)) == len(places)


def test_a_figure_is_found_by_its_whole_setting(tmp_path: Path) -> None:
    table = {"where": "Table 9", "metric": "accuracy", "out_of": 100, "fixed": {"kind": "a"}}
    rows = {"columns": ["task", "mean", "std"], "rows": [["one", 50, 2], ["two", 60, None]]}
    (tmp_path / "paper.json").write_text(json.dumps({"tables": [table | rows]}))
    paper = Paper(tmp_path / "paper.json")
    figure = paper.figure("accuracy", task="one", kind="a")
    assert figure is not None
    assert (figure.mean, figure.std, figure.where) == (0.5, 0.02, "Table 9")
    assert paper.figure("accuracy", task="one") is None
    assert paper.figure("loss", task="one", kind="a") is None
    assert paper.values("task") == ["one", "two"]
    (tmp_path / "paper.json").write_text(json.dumps({"tables": [table | rows | {"rows": [["one", 50]]}]}))
    with pytest.raises(ValueError, match="shorter"):
        Paper(tmp_path / "paper.json")
