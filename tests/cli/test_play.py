"""`hf-mech play`: the film, the scores, and what it refuses before it plays."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence
from typer.testing import CliRunner, Result

import hf_mech.hub.catalogue as catalogue
from hf_mech.cli import app
from hf_mech.control.play import play
from hf_mech.models.msat import MSATDecisionTransformer, MSATDecisionTransformerConfig
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig
from tests.control.squares import ID

SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": 4, "max_timestep": 40}
DOORWAY = {"environment": {"id": "hf_mech/Doorway-v0", "kwargs": {"rounds": 6}}, "target_return": 1.0}
ROOMS = {"environment": {"id": "hf_mech/Rooms-v0", "kwargs": {"max_episode_steps": 5}}, "target_return": 0.9}


def hf_mech(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def checkpoint(folder: Path, state_shape: list[int], **settings: Any) -> MSATDecisionTransformer:
    torch.manual_seed(0)
    config = MSATDecisionTransformerConfig(action_sizes=[3, 3], state_shape=state_shape, **SIZES, **settings)
    model = MSATDecisionTransformer(config).eval()
    model.save_pretrained(folder)
    return model


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if re.match(r" +\d+ ", line)]


def frames(file: Path) -> list[np.ndarray]:
    with Image.open(file) as film:
        return [np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]


def test_it_films_doorway_and_prints_the_scores_of_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = checkpoint(tmp_path / "door", [2], **DOORWAY)
    done = hf_mech("play", "door", "--episodes", 3, "--seed", 4, "--sample")
    assert done.exit_code == 0, done.output
    assert "Wrote door.gif" in done.stdout
    assert "hf_mech/Doorway-v0, asked for a return of 1" in done.stdout
    scores = play(model, episodes=range(3), seed=4, do_sample=True, progress=False)
    yes_no = {True: "yes", False: "no"}
    assert table(done.stdout) == [
        [str(i), yes_no[one.success], f"{one.total_return:.3f}", str(one.length)] for i, one in enumerate(scores)
    ]
    mean = sum(one.total_return for one in scores) / 3
    assert f"0 of 3 solved; on average a return of {mean:.3f} in 6.0 decisions" in done.stdout
    film = frames(tmp_path / "door.gif")
    assert film[0].shape == (256, 384, 3)
    assert len(film) == 7


def test_it_films_frames_of_the_models_size(tmp_path: Path) -> None:
    checkpoint(tmp_path / "rooms", [3, 36, 40], **ROOMS)
    file = tmp_path / "film.gif"
    file.write_text("an older one")
    done = hf_mech("play", tmp_path / "rooms", "--episodes", 1, "--target-return", 0.5, "-o", file)
    assert done.exit_code == 0, done.output
    assert "asked for a return of 0.5" in done.stdout
    assert len(table(done.stdout)) == 1
    assert frames(file)[0].shape == (36 * 9, 40 * 9, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.gif", "rooms"]


def test_a_name_of_the_catalogue_is_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(tmp_path / "msat-doorway", [2], **DOORWAY)
    (tmp_path / "msat-doorway" / catalogue.CHECKPOINT_FILE).write_text("{}")
    entry = {"name": "msat-doorway", "task": "", "model_type": "msat_decision_transformer", "auto_class": "AutoModel"}
    (tmp_path / "catalogue.json").write_text(json.dumps([{**entry, "headline": "", "bytes": 1}]))
    monkeypatch.setattr(catalogue, "_FOLDERS", (tmp_path,))
    monkeypatch.setattr(catalogue, "_LIST", tmp_path / "catalogue.json")
    catalogue.catalogue.cache_clear()
    try:
        done = hf_mech("play", "msat-doorway", "--no-film", "--episodes", 2)
        assert done.exit_code == 0, done.output
        assert len(table(done.stdout)) == 2
        refused(hf_mech("play", "msat-doorwy", "--no-film"), "'msat-doorwy' is no folder", "none of msat-doorway")
    finally:
        catalogue.catalogue.cache_clear()


def test_an_environment_without_pictures_has_scores_alone(tmp_path: Path) -> None:
    config = MSATDecisionTransformerConfig(
        action_sizes=[3, 2],
        state_shape=[3, 36, 36],
        **SIZES,
        environment={"id": ID, "kwargs": {"width": 36, "height": 36, "max_episode_steps": 3}},
        target_return=1.0,
    )
    MSATDecisionTransformer(config).save_pretrained(tmp_path / "walker")
    refused(hf_mech("play", tmp_path / "walker", "-o", tmp_path / "a.gif"), "renders no pictures", "--no-film")
    done = hf_mech("play", tmp_path / "walker", "--no-film", "--episodes", 2)
    assert done.exit_code == 0, done.output
    assert len(table(done.stdout)) == 2


def refused(done: Result, *texts: str) -> None:
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("hf-mech: ")
    assert all(text in done.stderr for text in texts), done.stderr


def test_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(tmp_path / "door", [2], **DOORWAY)
    checkpoint(tmp_path / "anywhere", [2], target_return=1.0)
    refused(hf_mech("play", tmp_path / "anywhere", "--no-film"), "names no environment")
    refused(hf_mech("play", tmp_path / "door", "-o", tmp_path / "film.mp4"), "A film is a GIF", "film.mp4")
    refused(hf_mech("play", tmp_path / "door", "-o", tmp_path / "none" / "a.gif"), "cannot be written: name a file in")
    refused(hf_mech("play", tmp_path / "none", "--no-film"), "none' is no folder of a checkpoint")
    StripsTransformer(StripsTransformerConfig()).save_pretrained(tmp_path / "strips")
    refused(hf_mech("play", tmp_path / "strips", "--no-film"), "a model with start_context and act")
    refused(hf_mech("play", tmp_path / "door", "--no-film", "--environment", "Dor-v0"), "No environment has the id")
    monkeypatch.setitem(sys.modules, "hf_mech.control.figures", None)
    refused(hf_mech("play", tmp_path / "door", "-o", tmp_path / "a.gif"), "pip install 'hf-mech[viz]'")
    assert not list(tmp_path.glob("*.gif"))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["MyWayHome", "DeadlyCorridor"])
def test_it_films_vizdoom(scenario: str, tmp_path: Path) -> None:
    sizes = {"MyWayHome": [3, 3], "DeadlyCorridor": [3, 3, 3, 2]}[scenario]
    torch.manual_seed(0)
    kwargs = {"max_episode_steps": 12}
    config = MSATDecisionTransformerConfig(
        action_sizes=sizes,
        state_shape=[3, 36, 64],
        **SIZES,
        environment={"id": f"hf_mech/{scenario}-v0", "kwargs": kwargs},
        target_return=1.0,
    )
    MSATDecisionTransformer(config).save_pretrained(tmp_path / "doom")
    done = hf_mech("play", tmp_path / "doom", "--episodes", 2, "-o", tmp_path / "doom.gif")
    assert done.exit_code == 0, done.output
    film = frames(tmp_path / "doom.gif")
    assert film[0].shape == (240, 320, 3)
    assert 1 < len(film) <= 13
