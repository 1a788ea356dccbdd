"""A cell: its seeds, its outcome, its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch.testing import assert_close

from hf_mech.models.strips import StripsTransformer
from tests.training.commands import stages_of
from tests.training.strips.conftest import theta_of
from training.engine import Job
from training.strips.experiment import EXPERIMENT
from training.strips.run import train_cell
from training.strips.settings import Cell


def test_a_run_shorter_than_one_measurement_saves_its_theta_in_its_range(cell: Cell, job: Job):
    outcome = train_cell(replace(cell, max_steps=20), job)
    assert outcome is not None
    assert outcome.steps == 20
    assert outcome.settled_at == [None] * 4
    theta = theta_of(job.folder)
    assert theta.min() >= 0
    assert theta.max() <= 1
    model = StripsTransformer.from_pretrained(job.folder / "model")
    assert len(outcome.domains) == 4
    for place, domain in enumerate(outcome.domains):
        assert model.to_domain(place, name=domain["name"]).to_dict() == domain


def test_the_paper_preset_never_redraws(cell: Cell, job: Job):
    overrides = {"num_test": 200, "max_steps": 120, "eval_steps": 30, "patience": 60}
    paper = Cell.of("paper", overrides, domain="simple", num_train=50, head_factor=1.0, data_seed=0, seeds="0..3")
    assert (paper.redraw_after, paper.beta2) == (0, 0.999)
    assert paper.name.startswith("simple-50-paper-")
    outcome = train_cell(paper, job)
    assert outcome is not None
    assert outcome.redraws == [0] * 4


def test_the_decay_takes_away_what_no_trace_determines(cell: Cell, job: Job, tmp_path: Path):
    def parts(decay: float) -> list[int]:
        own = replace(job, folder=tmp_path / str(decay))
        outcome = train_cell(replace(cell, l1_decay=decay, max_steps=3_000, head_factor=2.0), own)
        assert outcome is not None
        assert outcome.train_trace_accuracy == [1.0] * 4
        return [sum(len(a[kind]) for a in d["actions"] for kind in ("pre", "add", "del")) for d in outcome.domains]

    assert max(parts(0.1)) < min(parts(0.0))


def test_the_name_of_a_cell():
    paper, usual = (
        Cell.of(name, domain="simple", num_train=50, head_factor=1.0, data_seed=0) for name in ("paper", "redraw")
    )
    assert (paper.name, usual.name) == ("simple-50-paper", "simple-50-redraw")
    assert replace(usual, head_factor=2.0).name == "simple-50-heads-x2-redraw"
    assert replace(usual, seeds="3,7", batch_size=4).name == "simple-50-redraw-batch_size=4-seeds=3,7"


@pytest.fixture(scope="module")
def options() -> list[str]:
    return [*("--domain", "simple", "--sizes", "48", "--num_test", "100", "--max_steps", "40")]


def test_the_seeds_that_are_named_are_trained(options: list[str], job: Job, tmp_path: Path):
    thetas, names = {}, {}
    for seeds in ("3,7", "3", "7"):
        ((cell,),) = stages_of(EXPERIMENT, *options, "--seeds", seeds)
        assert cell.seeds == seeds
        own = replace(job, folder=tmp_path / seeds)
        outcome = train_cell(cell, own)
        assert outcome is not None
        thetas[seeds] = theta_of(own.folder)
        names[seeds] = [domain["name"] for domain in outcome.domains]
        assert [outcome.seed(place) for place in range(len(names[seeds]))] == [int(seed) for seed in seeds.split(",")]
    assert names["3,7"] == names["3"] + names["7"] == ["simple learned, seed 3", "simple learned, seed 7"]
    for place, seed in enumerate(("3", "7")):
        assert_close(thetas["3,7"][place], thetas[seed][0], rtol=0, atol=1e-5)
    assert (thetas["3"] - thetas["7"]).abs().max() > 0.1


def test_seeds_are_counted_from_0(options: list[str]):
    for given, seeds in ((["--num_seeds", "5"], "0..4"), (["--seeds", "0..4"], "0..4"), ([], "0..9")):
        ((cell,),) = stages_of(EXPERIMENT, *options, *given)
        assert cell.seeds == seeds
