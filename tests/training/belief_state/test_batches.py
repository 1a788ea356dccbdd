"""Batches are a function of the seed and the step; first graphs are smaller; examples come once an epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.training.belief_state.small import run_of, small
from training.belief_state.batches import CURVE, StarGraphBatches, held_out
from training.belief_state.settings import BASELINES


def test_a_batch_is_a_function_of_seed_and_step() -> None:
    first, again, other = (StarGraphBatches(run_of(seed=seed))[7]["input_ids"] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, StarGraphBatches(run_of(seed=1))[8]["input_ids"])


def test_every_model_of_a_seed_trains_on_the_same_graphs() -> None:
    edges = slice(0, 24)
    bst = StarGraphBatches(run_of("bst"))[3]["input_ids"][:, edges]
    for model in BASELINES:
        assert torch.equal(StarGraphBatches(run_of(model))[3]["input_ids"][:, edges], bst), model


def test_the_prompt_is_not_trained() -> None:
    run = run_of()
    batch = StarGraphBatches(run)[0]
    prompt = run.final.prompt_length
    assert (batch["labels"][:, :prompt] == -100).all()
    assert torch.equal(batch["labels"][:, prompt:], batch["input_ids"][:, prompt:])


def test_every_example_comes_once_an_epoch_in_another_order() -> None:
    batches = StarGraphBatches(small(examples=40))
    epochs = [[batches.number(step) for step in range(start, start + 10)] for start in (0, 10)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(10))] * 2
    assert epochs[0] != epochs[1]
    again = batches.number(10 + epochs[1].index(epochs[0][4]))
    assert again == epochs[0][4]
    at = 10 + epochs[1].index(epochs[0][4])
    assert torch.equal(batches[4]["input_ids"], batches[at]["input_ids"])


@pytest.mark.parametrize("graph", ["g-5-5", "g-2-20"])
def test_graphs_grow_and_keep_their_tokens(graph: str) -> None:
    options = {"growth_after": 0.0, "growth": 0.5, "first_length": 5, "first_nodes": 47}
    run = run_of(graph=graph, preset="cpu-long", steps=100, **options)
    batches = StarGraphBatches(run)
    first, last = batches[0]["input_ids"], batches[50]["input_ids"]
    assert first.shape[1] == run.grown(0.0).row_length < last.shape[1] == run.final.row_length
    for rows in (first, last):
        assert (rows[:, -1] == run.final.end_token).all()
        assert (rows[:, 2] == run.num_nodes).all()  # the bar
    assert first[first < run.num_nodes].max() == 46
    assert last[last < run.num_nodes].max() == 49
    assert (first[:, -2 - run.grown(0.0).length] == run.num_nodes + 1).all()  # the equals sign
    assert batches[0]["position_ids"].shape == first.shape
    assert batches[0]["position_ids"][0].tolist() == list(range(run.final.row_length))[-first.shape[1] :]
    assert "position_ids" not in batches[50]
    widths = [run.grown(done / 100).row_length for done in range(101)]
    assert widths == sorted(widths)
    assert run.grown(0.1) != run.final == run.grown(0.5)


def test_growing_rows_are_read_at_any_place() -> None:
    run = small(graph="g-2-20", growth=0.5, first_length=5, places="any", batch_size=64)
    positions, again = (StarGraphBatches(run)[0]["position_ids"] for _ in range(2))
    assert torch.equal(positions, again)
    assert (positions.diff() == 1).all()
    begins = positions[:, 0].unique()
    assert 30 < len(begins) <= 64
    assert begins.min() >= 0
    assert 100 < positions.max() < run.final.row_length
    assert "position_ids" not in StarGraphBatches(run)[run.steps - 1]


def test_graphs_of_the_test_are_of_no_other_stream() -> None:
    run = run_of()
    rows = [held_out(run, 200), held_out(run, 200, CURVE), *(StarGraphBatches(run)[s]["input_ids"] for s in range(3))]
    edges = np.concatenate(rows)[:, : run.final.prompt_length]
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert torch.equal(held_out(run, 200), rows[0])
    assert not torch.equal(held_out(run_of(seed=100), 200), rows[0])
