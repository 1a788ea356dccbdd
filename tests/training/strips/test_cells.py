"""A cell: its seeds, its outcome, its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor
from torch.testing import assert_close

from hf_mech.models.strips import StripsTransformer
from hf_mech.planning.walk_likelihood import walk_loss
from tests.training.commands import stages_of
from tests.training.strips.conftest import theta_of
from training.engine import Job
from training.strips.experiment import EXPERIMENT
from training.strips.run import load_traces, train_cell
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


def test_the_walks_term_forbids_what_no_trace_does(cell: Cell, job: Job, tmp_path: Path):
    """With the term, fewer actions are allowed along the walks."""
    few = replace(cell, domain="ferry-1c", num_train=20, seeds="0..3")

    def allowed(weight: float) -> Tensor:
        own = replace(job, folder=tmp_path / str(weight))
        outcome = train_cell(replace(few, walk_weight=weight, extra_steps=1_000, max_steps=3_000), own)
        assert outcome is not None
        assert all(step >= 1_000 for step in outcome.settled_at if step is not None)
        return walk_loss(theta_of(own.folder).round(), *load_traces(few).splits["train"])

    assert allowed(0.001).mean() < allowed(0.0).mean()


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
