"""The scenarios: buttons, rewards, frames, seeds and ends of episodes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from PIL import Image

from hf_mech.control import make_environment, make_policy
from hf_mech.control.vizdoom.environment import NearestNeighbour, ViZDoomEnvironment
from hf_mech.control.vizdoom.experts import Player, player
from tests.control.environments import play

HOME, CORRIDOR = "hf_mech/MyWayHome-v0", "hf_mech/DeadlyCorridor-v0"


def engine(environment: Any) -> ViZDoomEnvironment:
    """The environment under the wrappers."""
    unwrapped = environment.unwrapped
    assert isinstance(unwrapped, ViZDoomEnvironment)
    return unwrapped


@pytest.mark.parametrize(("name", "sizes"), [(HOME, [3, 3]), (CORRIDOR, [3, 3, 3, 2])])
def test_spaces_are_those_of_the_paper(name: str, sizes: list[int]) -> None:
    with make_environment(name) as environment:
        assert environment.action_space == MultiDiscrete(sizes)
        observation, info = environment.reset(seed=0)
        assert (observation.shape, observation.dtype, info) == ((72, 128, 3), np.uint8, {"is_success": False})


@pytest.mark.parametrize("name", [HOME, CORRIDOR])
def test_a_seed_repeats_an_episode_whatever_was_played_before(name: str) -> None:
    policy = make_policy("random", hold=2)
    with make_environment(name) as environment:
        first, other, again = (_digest(play(environment, policy, seed)) for seed in (1, 2, 1))
    with make_environment(name) as environment:
        assert _digest(play(environment, policy, 1)) == first == again != other


def _digest(episode: dict[str, Any]) -> str:
    return hashlib.sha256(episode["observations"].tobytes() + episode["rewards"].tobytes()).hexdigest()


def test_episodes_without_a_seed_differ_and_follow_the_last_seed() -> None:
    with make_environment(HOME) as environment:
        runs = []
        for _ in range(2):
            environment.reset(seed=5)
            runs.append([environment.reset()[0].tobytes() for _ in range(3)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 3


def test_each_choice_presses_its_button() -> None:
    with make_environment(CORRIDOR, frame_skip=12, skill=1) as environment:
        moved = {}
        for component, choice in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
            environment.reset(seed=0)
            action = np.zeros(4, np.int64)
            environment.step(action)  # the engine ignores the first steps' buttons
            action[component] = choice
            environment.step(action)
            me = player(engine(environment).game)
            moved[component, choice] = (_direction(me), me.ready)
    assert moved == {
        (0, 1): ([0, 0, 1], True),
        (0, 2): ([0, 0, -1], True),
        (1, 1): ([1, 0, 0], True),
        (1, 2): ([-1, 0, 0], True),
        (2, 1): ([0, 1, 0], True),
        (2, 2): ([0, -1, 0], True),
        (3, 1): ([0, 0, 0], False),
    }


def _direction(me: Player) -> list[int]:
    """The signs of the way east, the way north and the turn to the left, but for the push of a hit."""
    return [int(np.sign(part)) if abs(part) > 4 else 0 for part in (me.x, me.y, -me.to_turn(0))]


def test_time_out_truncates_and_shows_the_last_frame() -> None:
    with make_environment(HOME) as environment:
        episode = play(environment, always([1, 0]), 0)
    assert (episode["terminated"], episode["truncated"], episode["success"]) == (False, True, False)
    assert len(episode["actions"]) == 525
    assert episode["rewards"].sum() == pytest.approx(-0.21)
    assert np.array_equal(episode["observations"][-1], episode["observations"][-2])
    assert episode["observations"][-1].mean() > 10


def test_death_terminates_without_success() -> None:
    with make_environment(CORRIDOR) as environment:
        episode = play(environment, always([0, 1, 0, 0]), 0)
    assert (episode["terminated"], episode["truncated"], episode["success"]) == (True, False, False)
    assert episode["rewards"][-1] < -0.5  # a hundredth of the 100 that a death costs


def always(action: list[int]) -> Any:
    """A policy that always takes the same action."""

    class Same:
        def reset(self, environment: Any, generator: Any) -> None:
            pass

        def __call__(self, observation: Any, info: Any) -> Any:
            return np.array(action)

    return Same()


def test_rendering_shows_what_the_engine_drew() -> None:
    with make_environment(HOME, render_mode="rgb_array", frame_size=(120, 160)) as environment:
        observation, _ = environment.reset(seed=0)
        assert np.array_equal(np.asarray(environment.render()), observation)


def test_the_engine_draws_health_and_ammunition_if_asked_to() -> None:
    frames = []
    for hud in (False, True):
        with make_environment(CORRIDOR, hud=hud) as environment:
            frames.append(environment.reset(seed=0)[0].astype(int))
    changed = np.abs(frames[0] - frames[1]).sum(2) > 0
    assert changed[-8:].mean() > 0.9


def test_frames_are_resized_by_nearest_neighbour() -> None:
    frame = np.random.default_rng(0).integers(256, size=(120, 160, 3)).astype(np.uint8)
    half = NearestNeighbour((120, 160), (60, 80))(frame)
    assert np.array_equal(half, frame[::2, ::2])
    resized = NearestNeighbour((120, 160), (72, 128))(frame)
    assert (resized.dtype, resized.flags["C_CONTIGUOUS"]) == (np.uint8, True)
    assert np.array_equal(resized[71, 127], frame[71 * 120 // 72, 127 * 160 // 128])
    assert Image.fromarray(resized).size == (128, 72)


def test_skill_changes_the_engine() -> None:
    """At skill 1 a player who stands still lives longer than at skill 5."""
    lives = {}
    for skill in (1, 5):
        with make_environment(CORRIDOR, skill=skill) as environment:
            episodes = [play(environment, always([0, 0, 0, 0]), seed) for seed in range(3)]
            lives[skill] = np.mean([len(episode["actions"]) for episode in episodes])
    assert lives[1] > 1.5 * lives[5]
