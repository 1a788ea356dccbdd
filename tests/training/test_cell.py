"""What a cell leaves behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from hf_mech.models.strips.modeling_strips import StripsTransformer
from tests.training.conftest import theta_of


def test_a_run_shorter_than_one_measurement(strips_cell: ModuleType, cell: Any, tmp_path: Path):
    outcome = strips_cell.train_cell(replace(cell, max_steps=20), tmp_path)
    assert outcome.steps == 20
    assert outcome.settled_at == [None] * cell.seeds


def test_the_saved_theta_is_in_its_range(strips_cell: ModuleType, cell: Any, tmp_path: Path):
    outcome = strips_cell.train_cell(replace(cell, max_steps=300), tmp_path)
    theta = theta_of(tmp_path)
    assert theta.min() >= 0
    assert theta.max() <= 1
    model = StripsTransformer.from_pretrained(tmp_path / "model")
    for seed, domain in enumerate(outcome.domains):
        assert model.to_domain(seed, name=domain["name"]).to_dict() == domain


def test_the_paper_preset_never_redraws(strips_cell: ModuleType, cell: Any, tmp_path: Path):
    paper = replace(cell, redraw_after=None, beta2=0.999, patience=200, max_steps=400)
    assert paper.name == "simple-50-paper"
    outcome = strips_cell.train_cell(paper, tmp_path)
    assert outcome.redraws == [0] * cell.seeds
