"""Probes read what a state holds, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch

from tests.training.belief_state.small import run_of, small
from training.belief_state import probes
from training.belief_state.batches import PROBES, held_out
from training.belief_state.models import make_model
from training.belief_state.probes import known_bits, names_of, read_states, targets_of
from training.belief_state.run import probed_at
from training.engine import probes as engine_probes
from training.engine.probes import fit

NODES = [f"node {number}" for number in range(1, 6)]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer graphs and epochs."""
    for name, value in (("TRAINED", 3_000), ("CHOSEN", 300), ("TESTED", 500)):
        monkeypatch.setattr(probes, name, value)
    monkeypatch.setattr(engine_probes, "EPOCHS", 5)


def test_targets_are_the_path_and_the_edges() -> None:
    run = small()
    rows = held_out(run, 3)
    targets = targets_of(run, rows)
    assert targets.shape == (3, 5 + 16)
    assert torch.equal(targets[:, :5], rows[:, run.final.prompt_length : -1])
    assert len(names_of(run)) == 21
    assert names_of(run)[4:7] == ["node 5 of the path", "edge 1, parent", "edge 1, child"]
    assert targets[0, 5:9].tolist() == rows[0, [0, 1, 3, 4]].tolist()


@pytest.mark.usefixtures("few")
def test_known_nodes_are_read_and_others_are_not() -> None:
    run = small()
    rows = held_out(run, 3_800, PROBES)
    tokens = targets_of(run, rows)[:, :5]
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(2, 50, 64, generator=generator)
    states = embeddings[0][tokens[:, 1]] + embeddings[1][tokens[:, 4]]
    probing, found = fit(states, tokens, NODES, len(run.final.tokens), seed=0, chosen=300, tested=500)
    assert min(found.accuracy[1], found.accuracy[4]) > 0.95
    assert max(found.accuracy[place] for place in (0, 2, 3)) < 0.1
    assert max(found.bits[1], found.bits[4]) < 1
    assert min(found.bits[place] for place in (0, 2, 3)) > 5
    read = probing(states[-500:]).argmax(-1)  # the graphs that they were measured on
    assert (read == tokens[-500:].T).float().mean(1).tolist() == found.accuracy
    known = known_bits(run, {"bits": found.bits})
    assert known == pytest.approx(5 * math.log2(50) - sum(found.bits))
    assert 8 < known < 2 * math.log2(50) + 1


@pytest.mark.usefixtures("few")
def test_reading_states_changes_neither_the_model_nor_the_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "TRAINED", 300)
    monkeypatch.setattr(engine_probes, "EPOCHS", 1)
    run = small()
    torch.manual_seed(0)
    model = make_model(run).eval()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    state = torch.get_rng_state()
    probing, found = read_states(run, model, 500)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(found.accuracy) == len(found.bits) == 21
    assert all(torch.equal(weight, before[name]) and weight.grad is None for name, weight in model.named_parameters())
    again, readings = read_states(run, model, 300)
    assert readings == found
    assert probing.targets == again.targets == names_of(run)


def test_the_moments_are_evenly_spaced_and_end_with_the_training() -> None:
    assert probed_at(run_of(preset="probes")) == set(range(340, 3_401, 340))
    assert probed_at(run_of()) == set()
