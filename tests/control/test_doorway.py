"""The doorway: what independent components cannot do, and its expert can."""

from __future__ import annotations

import numpy as np
import pytest

from hf_mech.control import doorway, make_environment, make_policy
from tests.control.environments import play


def test_the_expert_takes_every_good_action_equally_often() -> None:
    with make_environment("hf_mech/Doorway-v0", rounds=2000) as environment:
        episode = play(environment, make_policy("expert"), 0)
    assert (episode["success"], episode["rewards"].sum()) == (True, pytest.approx(1.0))
    taken, counts = np.unique(episode["actions"], axis=0, return_counts=True)
    assert taken.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert counts / 2000 == pytest.approx([0.25] * 4, abs=0.05)


def test_the_experts_marginals_lead_to_a_bad_action() -> None:
    """Each component of the expert is most often 0, and both 0 is bad: independent components fail by argmax."""
    with make_environment("hf_mech/Doorway-v0", rounds=400) as environment:
        actions = play(environment, make_policy("expert"), 1)["actions"]
        likely = [np.bincount(component).argmax() for component in actions.T]
        assert likely == [0, 0]
        environment.reset(seed=0)
        assert environment.step(np.array(likely))[1] == 0.0


def test_observations_tell_time_and_the_last_round() -> None:
    with make_environment("hf_mech/Doorway-v0", rounds=4) as environment:
        seen = [environment.reset(seed=0)[0].tolist()]
        for action in ([0, 1], [1, 2], [2, 0], [0, 0]):
            observation, reward, terminated, truncated, info = environment.step(np.array(action))
            seen.append(observation.tolist())
    assert seen == [[1, 0], [0.75, 1], [0.5, 0], [0.25, 1], [0, 0]]
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, True, False, False)


def test_a_picture_shows_the_robots_the_door_and_the_rounds() -> None:
    with make_environment("hf_mech/Doorway-v0", rounds=4, render_mode="rgb_array") as environment:
        environment.reset(seed=0)
        pictures = [np.array(environment.render())]
        for action in ([0, 2], [1, 1], [0, 0]):
            environment.step(np.array(action))
            pictures.append(np.array(environment.render()))

    def pixels(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
        return np.argwhere((picture == colour).all(-1))

    first, second = doorway._ROBOTS
    for picture, places in zip(pictures, [(38, 38), (38, 13), (7, 13), (38, 38)], strict=True):
        assert picture.shape == (64, 96, 3)
        assert (pixels(picture, first).min(0)[0], pixels(picture, second).min(0)[0]) == places
    assert len(pixels(pictures[2], first)) > 40  # two robots in one wing are both seen
    door = [tuple(picture[22, 33].tolist()) for picture in pictures]
    assert door == [doorway._FLOOR, doorway._GOOD, doorway._BAD, doorway._BAD]
    shown = [tuple(pictures[3][-5, 96 * number // 4 + 12].tolist()) for number in range(4)]
    assert shown == [doorway._GOOD, doorway._BAD, doorway._BAD, doorway._TO_COME]
    with make_environment("hf_mech/Doorway-v0") as environment:
        assert environment.render_mode is None
