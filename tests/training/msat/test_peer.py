"""transformers' DecisionTransformer as a model of a run: its loss, its play, and its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional
from transformers import DecisionTransformerModel

from hf_mech.control.play import play
from tests.training.jobs import refusal_of
from tests.training.msat.small import small_run, trained
from training.msat.experiment import EXPERIMENT
from training.msat.models import make_model
from training.msat.peer import DecisionTransformerPlayer
from training.msat.settings import PEER

RUN = small_run(PEER, scenario="doorway", hidden=16)
"""Two components of three values each."""


def made() -> DecisionTransformerPlayer:
    torch.manual_seed(0)
    model = make_model(RUN)
    assert isinstance(model, DecisionTransformerPlayer)
    return model.eval()


def window(steps: int = 5, seed: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "states": torch.rand(1, steps, 2, generator=generator),
        "actions": torch.randint(3, (1, steps, 2), generator=generator),
        "returns_to_go": torch.rand(1, steps, generator=generator),
        "timesteps": torch.arange(steps)[None],
        "attention_mask": torch.ones(1, steps, dtype=torch.long),
    }


@torch.no_grad()
def test_the_loss_is_the_stock_models_action_preds_read_as_logits() -> None:
    model, batch = made(), window()
    labels = batch["actions"].clone()
    labels[0, -1] = -100
    stock = model.model(
        states=batch["states"],
        actions=torch.cat([functional.one_hot(batch["actions"][..., one], 3) for one in (0, 1)], -1).float(),
        returns_to_go=batch["returns_to_go"][..., None],
        timesteps=batch["timesteps"],
        attention_mask=batch["attention_mask"],
    ).action_preds[:, :-1]
    parts = [
        functional.cross_entropy(stock[0, :, 3 * one : 3 * one + 3], batch["actions"][0, :-1, one]) for one in (0, 1)
    ]
    assert torch.allclose(model(**batch, labels=labels).loss, sum(parts) / 2, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("seed", range(8))
def test_it_decides_as_its_forward_does_and_rows_do_not_meet(seed: int) -> None:
    model, batch = made(), window(seed=seed)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_()  # so large that every part of a step decides
    context = model.start_context(2)
    taken = []
    for step in range(5):
        state, wanted = batch["states"][0, step], float(batch["returns_to_go"][0, step])
        if step < 2:  # another environment, whose steps must not be seen
            model.act(state[None] + 1, context, [0.0], begins=[step == 0], rows=[1])
        taken.append(model.act(state[None], context, [wanted], begins=[step == 0], rows=[0])[0])
    batch["actions"] = torch.stack(taken)[None]
    assert (model(**batch).logits.argmax(-1) == batch["actions"]).all()


def test_it_learns_the_door_and_its_folder_is_transformers_own(tmp_path: Path) -> None:
    outcome = trained(tmp_path, RUN)
    assert 1.0 < outcome.losses[-1] < 1.06  # a guess has log 3 = 1.10, independent components 1.5 log 2 = 1.04 at best
    stock = DecisionTransformerModel.from_pretrained(tmp_path / RUN.name / "model")
    player = made()
    player.model.load_state_dict(stock.state_dict())
    scores = play(player, "hf_mech/Doorway-v0", range(3), target_return=1.0, seed=RUN.seed)
    assert [score.total_return for score in scores] == [score["total_return"] for score in outcome.argmax]


def test_the_peer_alone_is_refused_before_it_trains(tmp_path: Path) -> None:
    """A card needs a model of the paper; one that is there already will do."""
    said = refusal_of(EXPERIMENT, "--model", PEER, "--scenario", "doorway", "--output_dir", str(tmp_path / "runs"))
    assert f"train --model baseline beside {PEER}" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [("--scenario", "rooms"), ("--scenario", "doorway", "--positions", "off")])
def test_frames_and_no_positions_are_refused(arguments: tuple[str, ...]) -> None:
    message = refusal_of(EXPERIMENT, "--model", PEER, *arguments)
    assert "--scenario of doorway, go_to_local, unlock_pickup" in message
