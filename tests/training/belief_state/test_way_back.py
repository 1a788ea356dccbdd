"""How far back from the goal a model knows a path, against the text head asked pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.training.belief_state.small import outcome_of, run_of, small
from tests.training.belief_state.test_score import sharp_model
from tests.training.jobs import job_in
from training.belief_state.batches import held_out
from training.belief_state.experiment import EXPERIMENT
from training.belief_state.report import measurements, way_back_table
from training.belief_state.run import train_run
from training.belief_state.way_back import way_back


@torch.no_grad()
def test_nodes_that_the_model_says_are_known() -> None:
    run = small(num_nodes=20)
    model: Any = sharp_model(run)
    graph, rows = run.final, held_out(run, 10)
    state = model.encode(rows[:, : graph.prompt_length])
    paths = rows[:, graph.prompt_length : -1]  # a view: writes into the rows
    for step in range(1, graph.length - 1):
        suffix = model.suffix_state(paths[:, -step:])[:, 0]
        paths[:, -step - 1] = model.text_head(state, suffix)[1].argmax(-1)
    assert way_back(run, model, rows, 3) == [1.0, 1.0, 1.0]
    paths[:5, 1] += 1
    assert way_back(run, model, rows, 3) == [1.0, 1.0, 0.5]


def test_a_run_has_it_if_its_model_says_what_is_before_a_suffix(tmp_path: Path) -> None:
    steps = {}
    for name in ("bst", "bst_without_prev", "forward_only"):
        outcome = train_run(small(name, steps=2), job_in(tmp_path / name, EXPERIMENT))
        assert outcome is not None
        steps[name] = len(outcome.way_back)
    assert steps == {"bst": 3, "bst_without_prev": 0, "forward_only": 0}


def test_the_table_has_a_row_for_each_setting_that_was_measured() -> None:
    known = [outcome_of(run_of(seed=seed), 5_000, way_back=[1.0, 0.5 + 0.1 * seed, 0.5]) for seed in range(2)]
    without = [outcome_of(run_of(seed=2), 5_000), outcome_of(run_of("forward_only"), 5_000)]
    rows = way_back_table(measurements([*known, *without])).rows
    assert rows == [["g-2-5", "bst", "", "100 55 50", "50.0 ± 0.0", "2"]]
