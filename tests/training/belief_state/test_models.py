"""Models: BST and its ablations by configuration, stock baselines, and where they begin."""

from __future__ import annotations

import pytest
import torch
from torch.optim import AdamW
from transformers import GPT2LMHeadModel

from tests.training.belief_state.small import run_of, small
from training.belief_state.models import (
    forward_encoder,
    make_model,
    make_optimizer,
    prompt_states,
    with_objective,
    without_objective,
)
from training.belief_state.settings import BASELINES, BELIEF_STATES, OBJECTIVES
from training.engine import SettingsError
from training.engine.optimizers import MuonOfParts, Together
from training.engine.weights import SHARPER


def test_ablations_lack_their_part() -> None:
    models = {name: make_model(small(name)) for name in BELIEF_STATES}
    for name, model in models.items():
        names = dict(model.named_parameters())
        assert ("text_head.prev.weight" in names) == (name != "bst_without_prev")
        assert any("backward_encoder" in part for part in names) == (name != "bst_without_backward")


@pytest.mark.parametrize("model", BASELINES)
def test_baselines_are_stock(model: str) -> None:
    made = make_model(small(model))
    assert type(made) is GPT2LMHeadModel
    assert made.config.n_inner == made.config.n_embd
    assert made.config.n_positions >= small(model).final.row_length


def test_the_blocks_of_baselines_take_as_much_computation() -> None:
    """Blocks times tokens: BST's backward encoder reads the path alone, its forward encoder all of a row (App. C)."""
    run = run_of("bst")
    bst, forward = (make_model(run_of(name)).config for name in ("bst", "forward_only"))
    ahead = bst.encoder_config.n_layer * run.final.row_length
    back = bst.backward_encoder_config.n_layer * (run.final.length + 1)
    assert forward.n_layer * run.final.row_length >= ahead + back


@pytest.mark.parametrize("model", ["bst", "forward_only"])
def test_tokens_and_positions_begin_orthogonal(model: str) -> None:
    torch.manual_seed(0)
    made = make_model(run_of(model))
    rows = torch.cat([made.get_input_embeddings().weight, forward_encoder(made).wpe.weight / SHARPER])
    size = rows.shape[1]
    assert len(rows) < size
    torch.testing.assert_close(rows @ rows.T / size, torch.eye(len(rows)), atol=1e-5, rtol=0)


def test_more_rows_than_the_width_has() -> None:
    made = make_model(run_of(graph="g-2-20"))
    tokens, positions = made.get_input_embeddings().weight, forward_encoder(made).wpe.weight
    rows = torch.cat([tokens, positions / SHARPER])[: tokens.shape[1]]
    torch.testing.assert_close(rows @ rows.T / rows.shape[1], torch.eye(rows.shape[1]), atol=1e-5, rtol=0)


def test_waves_turn_alike_everywhere_and_leave_the_tokens_alone() -> None:
    """For more positions than dimensions are left: 138, in 40."""
    torch.manual_seed(0)
    made = make_model(run_of(graph="g-2-20", initialization="waves"))
    tokens, positions = made.get_input_embeddings().weight, forward_encoder(made).wpe.weight / SHARPER
    assert (tokens @ positions.T).abs().max() < 1e-3
    likeness = positions @ positions.T / tokens.shape[1]
    torch.testing.assert_close(likeness[1:, 1:], likeness[:-1, :-1], atol=1e-4, rtol=0)  # the distance alone counts
    torch.testing.assert_close(likeness.diagonal(), torch.ones(len(positions)), atol=1e-4, rtol=0)
    assert (likeness - torch.eye(len(positions))).abs().max() < 0.6


def test_waves_need_room_beside_the_tokens() -> None:
    with pytest.raises(SettingsError, match="a --hidden of at least 58, got 57"):
        make_model(run_of(hidden=57, heads=1, initialization="waves"))


@pytest.mark.parametrize("model", ["bst", "forward_only"])
def test_muon_has_the_matrices_of_the_blocks(model: str) -> None:
    made = make_model(small(model))
    optimizer = make_optimizer(small(model), made)
    assert isinstance(optimizer, Together)
    muon, adamw = optimizer.optimizers
    assert isinstance(muon, MuonOfParts)
    assert isinstance(adamw, AdamW)
    names = {id(parameter): name for name, parameter in made.named_parameters()}
    of_muon = {names[id(parameter)] for parameter, _ in muon.views}
    of_adamw = {names[id(parameter)] for group in adamw.param_groups for parameter in group["params"]}
    assert of_muon | of_adamw == set(names.values())
    assert not of_muon & of_adamw
    assert all(name.endswith("weight") and (".h." in name or "text_head" in name) for name in of_muon)
    assert not any("wte" in name or "wpe" in name or "embed" in name or "lm_head" in name for name in of_muon)
    assert all(len(parts) == (3 if "c_attn" in names[id(matrix)] else 1) for matrix, parts in muon.views)
    assert len([name for name in of_muon if ".h." in name]) == 4 * (2 if model == "bst" else 1)


@pytest.mark.parametrize("model", OBJECTIVES)
def test_objectives_surround_a_stock_model(model: str) -> None:
    """They look to the end of the path, and Muon trains the matrices that they add."""
    run = small(model, "g-2-7", depth_decay=0.5, muon_learning_rate=0.1)
    made = make_model(run)
    around = with_objective(run, made)
    assert without_objective(around) is made
    assert without_objective(make_model(small("bst"))).config.model_type == "belief_state"
    assert around.horizon == 5
    assert with_objective(small(model, horizon=2), made).horizon == 2
    optimizer = make_optimizer(run, around)
    assert isinstance(optimizer, Together)
    muon = optimizer.optimizers[0]
    assert isinstance(muon, MuonOfParts)
    added = {id(part): name for name, part in around.named_parameters() if not name.startswith("model.")}
    rates = {id(part): group["lr"] for group in muon.param_groups for part in group["params"]}
    found = {added[id(matrix)]: rates[id(parts[0])] for matrix, parts in muon.views if id(matrix) in added}
    assert len(found) == {"next_latent": 3, "multi_token": 5 * 4, "joint_multi_token": 4}[model]
    assert set(found.values()) == {0.05 if model == "multi_token" else 0.1}


@pytest.mark.parametrize("model", ["bst", "forward_only"])
def test_later_blocks_learn_slower(model: str) -> None:
    run = small(model, layers=3, baseline_layers=3, depth_decay=0.5, muon_learning_rate=0.1)
    made = make_model(run)
    optimizer = make_optimizer(run, made)
    assert isinstance(optimizer, Together)
    muon = optimizer.optimizers[0]
    assert isinstance(muon, MuonOfParts)
    names = {id(parameter): name for name, parameter in made.named_parameters()}
    rates = {id(part): group["lr"] for group in muon.param_groups for part in group["params"]}
    for matrix, parts in muon.views:
        name = names[id(matrix)]
        block = int(name.split(".h.")[1][0]) if ".h." in name and "backward" not in name else 0
        assert [rates[id(part)] for part in parts] == pytest.approx([(0.1, 0.075, 0.05)[block]] * len(parts))


@pytest.mark.parametrize("model", ["bst", "forward_only"])
def test_the_state_behind_the_prompt_depends_on_the_goal(model: str) -> None:
    torch.manual_seed(0)
    run = small(model)
    made = make_model(run).eval()
    prompts = torch.arange(run.final.prompt_length)[None].repeat(2, 1)
    prompts[1, -2] = 49
    with torch.no_grad():
        states = prompt_states(made, prompts)
    assert states.shape == (2, run.hidden)
    assert not torch.allclose(states[0], states[1])
