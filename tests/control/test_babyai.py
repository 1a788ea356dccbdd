"""BabyAI's levels: what the player sees, the expert, and Minari's own data of them."""

from __future__ import annotations

import contextlib
import io
import string
import sys

import gymnasium
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.utils.baby_ai_bot import BabyAIBot

from hf_mech.control import ControlError, MissingExtraError, episode_seed, make_environment, make_policy
from hf_mech.control.babyai import FEATURES, WORDS, observation_vector
from hf_mech.control.minari_format import read_minari
from hf_mech.control.recording import record, record_episode
from tests.control.environments import play


def read_back(vector):
    """The image, the direction and the words of a vector, one field at a time."""
    kinds, colours, states = len(OBJECT_TO_IDX), len(COLOR_TO_IDX), len(STATE_TO_IDX)
    cells, rest = np.split(vector, [49 * (kinds + colours + states)])
    parts = np.split(cells.reshape(7, 7, -1), [kinds, kinds + colours], -1)
    assert all((part.sum(-1) == 1).all() for part in parts)
    words = rest[4:].reshape(-1, len(WORDS))
    names = list(WORDS)
    said = " ".join(names[row.argmax()] for row in words if row.any())
    return np.stack([part.argmax(-1) for part in parts], -1), rest[:4].argmax(), said


@pytest.mark.parametrize("level", ["GoToLocal", "UnlockPickup", "PutNextLocal"])
def test_the_vector_holds_all_that_the_player_sees(level):
    with (
        contextlib.closing(gymnasium.make(f"BabyAI-{level}-v0")) as plain,
        make_environment("hf_mech/BabyAI-v0", level=level) as ours,
    ):
        for seed in range(3):
            with contextlib.redirect_stdout(io.StringIO()):
                theirs, _ = plain.reset(seed=seed)
            vector, info = ours.reset(seed=seed)
            for action in (2, 0, 2, 1, 3, 2):
                image, direction, said = read_back(vector)
                assert (image == theirs["image"]).all()
                assert (direction, said) == (theirs["direction"], theirs["mission"]) == (direction, info["mission"])
                theirs, reward, *ended, _ = plain.step(action)
                vector, ours_reward, *ours_ended, info = ours.step(np.array([action]))
                assert (reward, ended) == (ours_reward, ours_ended)
                if any(ended):
                    break


def test_the_expert_does_every_errand_and_noise_costs_steps():
    with make_environment("hf_mech/BabyAI-v0") as environment:
        expert = [play(environment, make_policy("expert"), seed) for seed in range(12)]
        noisy = [play(environment, make_policy("noisy", noise=0.5), seed) for seed in range(12)]
        lazy = [play(environment, make_policy("random"), seed) for seed in range(12)]
    assert all(one["success"] and one["terminated"] for one in expert + noisy)
    steps = [sum(len(one["actions"]) for one in several) for several in (expert, noisy, lazy)]
    assert steps == sorted(steps)
    assert steps[0] < steps[2] / 3
    assert expert[0]["rewards"].sum() == pytest.approx(1 - 0.9 * len(expert[0]["actions"]) / 64)


def test_the_expert_stands_still_when_an_opened_box_is_gone():
    """Seeds 0 to 59 with this noise have four of them, and the bot itself fails there."""
    with make_environment("hf_mech/BabyAI-v0", level="UnlockPickup") as environment:
        ends = [record_episode(environment, make_policy("noisy"), seed) for seed in range(60)]
    lost = [episode for episode in ends if not episode.success[-1]]
    assert lost
    assert all(episode.truncated and (episode.actions[-10:] == 6).mean() > 0.5 for episode in lost)


def of_minari(folder, level, episodes):
    """A data set in Minari's own form: MiniGrid's observations, as dicts, and the actions of MiniGrid's bot."""
    grid = gymnasium.make(f"BabyAI-{level}-v0")
    mission = gymnasium.spaces.Text(100, charset=string.ascii_letters + " ,")  # Minari cannot write a MissionSpace
    space = gymnasium.spaces.Dict({**grid.observation_space.spaces, "mission": mission})
    storage = MinariStorage.new(folder / "data", space, grid.action_space)
    storage.update_metadata({"dataset_id": f"minigrid/BabyAI-{level}/optimal-v0", "minari_version": minari.__version__})
    storage.update_episodes(by_the_bot(grid, episode_seed(0, "train", number)) for number in range(episodes))
    return folder


def by_the_bot(grid, seed):
    with contextlib.redirect_stdout(io.StringIO()):
        seen, actions, rewards, ends = [grid.reset(seed=seed)[0]], [], [], []
    bot = BabyAIBot(grid.unwrapped)
    while not (ends and any(ends[-1])):
        actions.append(int(bot.replan(None)))
        observation, reward, *ended, _ = grid.step(actions[-1])
        seen.append(observation)
        rewards.append(reward)
        ends.append(ended)
    columns = {name: [one[name] for one in seen] for name in ("image", "direction", "mission")}
    return EpisodeBuffer(
        observations=columns | {name: np.array(columns[name]) for name in ("image", "direction")},
        actions=np.array(actions),
        rewards=np.array(rewards),
        terminations=np.array([one for one, _ in ends]),
        truncations=np.array([one for _, one in ends]),
        infos={},
    )


@pytest.mark.parametrize("num_proc", [None, 2])
def test_minaris_own_data_is_what_we_record(tmp_path, num_proc):
    name = of_minari(tmp_path, "GoToLocal", 4)
    ours = record("hf_mech/BabyAI-v0", "expert", 4, level="GoToLocal")
    theirs = read_minari(name, observe=observation_vector, num_proc=num_proc)
    assert theirs.features == ours.features
    columns = [name for name in ours.column_names if name not in ("success", "seed")]  # Minari's infos have no success
    assert theirs.select_columns(columns).to_list() == ours.select_columns(columns).to_list()
    with pytest.raises(ControlError, match=r"are Dict.* give `observe`"):
        read_minari(name)


def test_wrong_input_is_refused():
    with pytest.raises(ControlError, match=r"level must be one of .*GoToLocal.*, got 'Nowhere'"):
        make_environment("hf_mech/BabyAI-v0", level="Nowhere")
    seen = {"image": np.zeros((7, 7, 3), np.uint8), "direction": 0, "mission": "go to the red ball"}
    assert observation_vector(seen).shape == (FEATURES,)
    with pytest.raises(ControlError, match=r"must be \[7, 7, 3\], .* got \[5, 5, 3\]"):
        observation_vector(seen | {"image": np.zeros((5, 5, 3), np.uint8)})
    for mission in ("find the red ball", "go to the red ball " * 3):
        with pytest.raises(ControlError, match="at most 10 words, all of BabyAI's"):
            observation_vector(seen | {"mission": mission})


def test_without_minigrid_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "hf_mech.control.babyai")
    monkeypatch.setitem(sys.modules, "minigrid.core.actions", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hf-mech\[minigrid\]'"):
        make_environment("hf_mech/BabyAI-v0")
