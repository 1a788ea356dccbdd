"""The four rooms: frames, walls, and the expert."""

from __future__ import annotations

import numpy as np
import pytest

from hf_mech.control import make_environment, make_policy
from hf_mech.control.geometry import distances_to_walls
from hf_mech.control.rooms import BODY, GOAL, VEST, Painter, RoomsEnvironment, room, walls
from tests.control.environments import play


def test_the_expert_finds_the_goal_from_everywhere() -> None:
    with make_environment("hf_mech/Rooms-v0") as environment:
        episodes = [play(environment, make_policy("expert"), seed) for seed in range(15)]
    assert all(episode["success"] and episode["terminated"] for episode in episodes)
    assert max(len(episode["actions"]) for episode in episodes) < 100
    assert episodes[0]["rewards"].sum() == pytest.approx(1 - 0.001 * len(episodes[0]["actions"]))


def test_a_random_policy_runs_out_of_time() -> None:
    with make_environment("hf_mech/Rooms-v0") as environment:
        episodes = [play(environment, make_policy("random"), seed) for seed in range(3)]
    late = [episode for episode in episodes if not episode["success"]]
    assert late
    assert all(e["truncated"] and not e["terminated"] and len(e["actions"]) == 200 for e in late)


def test_nobody_walks_through_walls() -> None:
    environment = RoomsEnvironment()
    environment.reset(seed=0)
    generator = np.random.default_rng(0)
    places = []
    for _ in range(400):
        if environment.step(generator.integers([3, 3]))[2]:
            environment.reset()
        places.append((environment.x, environment.y))
    assert distances_to_walls(np.array(places), walls()).min() >= BODY


def test_the_goal_is_green_ahead_and_hidden_by_walls() -> None:
    paint = Painter(36, 64)
    x, y = GOAL
    green = [(paint(*pose) == VEST).all(-1) for pose in ((x - 2, y, 0.0), (x - 2, y, 180.0), (x, y + 4.0, 270.0))]
    assert [picture.any() for picture in green] == [True, False, False]
    assert green[0][:, 31:33].any()
    assert np.array_equal(green[0], green[0][:, ::-1])
    assert not green[0][:18].any()


def test_rooms_are_numbered_by_their_corners() -> None:
    assert room(np.array([[1.0, 1.0], [7.0, 1.0], [1.0, 7.0], [7.0, 7.0]])).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [(36, 64), (72, 128), (9, 8)])
def test_frames_have_the_size_that_was_asked_for(size: tuple[int, int]) -> None:
    with make_environment("hf_mech/Rooms-v0", frame_size=size, render_mode="rgb_array") as environment:
        observation, _ = environment.reset(seed=0)
        assert (observation.shape, observation.dtype) == ((*size, 3), np.uint8)
        assert np.array_equal(np.asarray(environment.render()), observation)
