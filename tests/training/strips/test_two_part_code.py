"""The learner `two_part_code`: its models, its options, and a kill."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hf_mech.models.strips import StripsTransformer
from tests.training.strips.conftest import theta_of
from training.engine import Job
from training.engine.settings import SettingsError
from training.strips.run import train_cell
from training.strips.settings import Cell


@pytest.fixture
def code_cell() -> Cell:
    overrides = {"num_test": 200, "sweeps": 40}
    chosen = {"domain": "simple", "num_train": 50, "head_factor": 1.0, "data_seed": 3, "seeds": "0..2"}
    return Cell.of("two_part_code", overrides, **chosen)


def test_it_learns_the_domain_and_saves_it(code_cell: Cell, job: Job):
    outcome = train_cell(code_cell, job)
    assert outcome is not None
    assert outcome.train_trace_accuracy == outcome.test_trace_accuracy == [1.0] * 3
    assert outcome.code_bits is not None
    assert len(outcome.code_bits) == 3
    assert outcome.steps == 40
    model = StripsTransformer.from_pretrained(job.folder / "model")
    for place, domain in enumerate(outcome.domains):
        assert model.to_domain(place, name=domain["name"]).to_dict() == domain


def test_heads_that_are_not_needed_stay_empty(code_cell: Cell, job: Job):
    outcome = train_cell(replace(code_cell, head_factor=3.0), job)
    assert outcome is not None
    assert outcome.test_trace_accuracy == [1.0] * 3
    assert outcome.propositions_found == [outcome.propositions_needed] * 3
    assert theta_of(job.folder).shape[1] == 9


def test_killed_between_two_saves(code_cell: Cell, job: Job, tmp_path):
    straight = train_cell(code_cell, replace(job, folder=tmp_path / "straight"))
    assert train_cell(code_cell, replace(job, stop_at=20)) is None
    assert (job.folder / "checkpoint-20").is_dir()
    revived = train_cell(code_cell, job)
    assert straight is not None
    assert revived is not None
    assert revived.code_bits == pytest.approx(straight.code_bits, abs=1e-6)
    assert torch.equal(theta_of(job.folder), theta_of(tmp_path / "straight"))


def test_the_whole_domain_is_never_smaller_than_the_shortest(code_cell: Cell, job: Job, tmp_path):
    train_cell(code_cell, job)
    train_cell(replace(code_cell, shortest_only=True), replace(job, folder=tmp_path / "shortest"))
    whole, shortest = theta_of(job.folder), theta_of(tmp_path / "shortest")
    assert (whole[:, :, :, 0] >= shortest[:, :, :, 0]).all()
    assert (whole[:, :, :, 2] >= shortest[:, :, :, 2]).all()


@pytest.mark.parametrize(
    ("preset", "given", "names"),
    [
        ("two_part_code", {"learning_rate": 0.1}, "--learning_rate is an option of --learner gradient"),
        ("redraw", {"sweeps": 7}, "--sweeps is an option of --learner two_part_code"),
        ("paper", {"learner": "guess"}, "--learner"),
    ],
)
def test_an_option_of_the_other_learner(preset, given, names):
    with pytest.raises(SettingsError, match=names):
        Cell.of(preset, given, domain="simple", num_train=50, head_factor=1.0, data_seed=0)


def test_its_name():
    cell = Cell.of("two_part_code", domain="simple", num_train=50, head_factor=1.0, data_seed=100)
    assert cell.name == "simple-50-data100-two_part_code"
    noisy = Cell.of("two_part_code", {"label_noise": 0.02}, domain="simple", num_train=50, head_factor=1.0, data_seed=0)
    assert noisy.name == "simple-50-two_part_code-label_noise=0.02"
    assert cell.data == {"seed": 100, "num_train": 50, "num_test": 10_000}
    assert noisy.data["label_noise"] == 0.02


def test_other_negatives_in_training_leave_the_test_as_it_is():
    cell = Cell.of(
        "paper", {"negatives": "inapplicable"}, domain="blocksworld-2b", num_train=50, head_factor=1.0, data_seed=0
    )
    assert (cell.data["negatives"], cell.data["test_negatives"]) == ("inapplicable", "contradiction")
