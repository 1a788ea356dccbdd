"""The factory: any environment of gymnasium in one form, and its refusals."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.utils.env_checker import check_env

from hf_mech.control import make_environment
from hf_mech.control.environments import MultiDiscreteEnvironment
from hf_mech.control.errors import (
    ControlError,
)
from tests.control.environments import Fixed

OURS = [f"hf_mech/{name}-v0" for name in ("MyWayHome", "DeadlyCorridor", "Rooms", "Doorway", "BabyAI")]


@pytest.mark.parametrize("name", OURS)
def test_gymnasium_finds_no_fault_with_ours(name: str) -> None:
    with gymnasium.make(name) as environment:
        check_env(environment.unwrapped, skip_render_check=True)


def test_a_discrete_environment_of_another_package_works_as_it_is() -> None:
    with make_environment("CartPole-v1") as environment:
        assert environment.action_space == MultiDiscrete([2])
        observation, info = environment.reset(seed=0)
        assert (observation.shape, observation.dtype, info["is_success"]) == ((4,), np.float32, False)
        observation, reward, terminated, truncated, info = environment.step(np.array([1]))
        assert environment.observation_space.contains(observation)
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        assert info["is_success"] is False


@pytest.mark.parametrize(
    ("space", "sizes", "action", "inner"),
    [
        (Discrete(3, start=-1), [3], [0], -1),
        (Discrete(3), [3], [2], 2),
        (MultiBinary(3), [2, 2, 2], [0, 1, 1], [0, 1, 1]),
        (MultiDiscrete([3, 2]), [3, 2], [2, 1], [2, 1]),
        (MultiDiscrete([3, 2], start=[1, 5]), [3, 2], [2, 1], [3, 6]),
    ],
)
def test_actions_reach_the_environment_in_its_own_form(
    space: Space[Any], sizes: list[int], action: list[int], inner: Any
) -> None:
    environment = Fixed(space)
    wrapped = MultiDiscreteEnvironment(environment)
    assert wrapped.action_space == MultiDiscrete(sizes)
    wrapped.reset()
    wrapped.step(np.array(action))
    assert np.array_equal(environment.action, inner)
    assert space.contains(environment.action)


def test_success_is_reported_under_either_name() -> None:
    environment = Fixed(Discrete(2))
    wrapped = MultiDiscreteEnvironment(environment)
    wrapped.reset()
    for info, success in (({}, False), ({"success": 1.0}, True), ({"is_success": False, "success": True}, False)):
        environment.infos = info
        assert wrapped.step(np.array([0]))[-1]["is_success"] is success


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([1], r"must be 2 whole numbers, one a component, got int64 of shape \[1\]: \[1\]"),
        ([[1, 1]], "must be 2 whole numbers"),
        ([1.0, 0.0], "got float64"),
        ([3, 0], r"must be below \[3, 2\] and not negative, got \[3, 0\]"),
        ([0, -1], "not negative"),
    ],
)
def test_wrong_actions_are_refused(action: list[Any], message: str) -> None:
    environment = MultiDiscreteEnvironment(Fixed(MultiDiscrete([3, 2])))
    environment.reset()
    with pytest.raises(ControlError, match=message):
        environment.step(np.array(action))


@pytest.mark.parametrize(
    ("actions", "observations", "message"),
    [
        (Box(0, 1, (2,)), None, "must have Discrete actions"),
        (MultiDiscrete(np.full((2, 2), 2)), None, "in one row"),
        (Discrete(2), Dict({"a": Discrete(2)}), "FlattenObservation"),
        (Discrete(2), Box(0, 1, (8, 8, 3), np.float32), "must show uint8 frames"),
        (Discrete(2), Box(0, 255, (8, 8), np.uint8), "must show uint8 frames"),
    ],
)
def test_other_spaces_are_refused(actions: Space[Any], observations: Space[Any] | None, message: str) -> None:
    with pytest.raises(ControlError, match=message):
        MultiDiscreteEnvironment(Fixed(actions, observations))


def test_an_unknown_environment_is_refused_with_the_names_of_ours() -> None:
    with pytest.raises(ControlError, match=r"hf_mech/DeadlyCorridor-v0, .*hf_mech/Rooms-v0"):
        make_environment("hf_mech/NoWayHome-v0")


@pytest.mark.parametrize("given", [Fixed, Fixed(Discrete(2)), None])
def test_an_environment_is_given_by_its_id(given: Any) -> None:
    with pytest.raises(ControlError, match=r"by its id, .*gymnasium\.register"):
        make_environment(given)


def test_observations_of_another_shape_than_the_space_are_refused() -> None:
    inner = Fixed(Discrete(2), Box(0, 1, (2,)))
    environment = MultiDiscreteEnvironment(inner)
    inner.observation_space = Box(0, 1, (3,))  # what it shows from now on
    with pytest.raises(ControlError, match=r"Fixed must show .* \[2\] of its observation_space, shows \[3\]"):
        environment.reset()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Rooms", {"frame_size": (7, 64)}, r"from \(8, 8\) to \(512, 512\), got \(7, 64\)"),
        ("Rooms", {"colour": "red"}, "colour"),
        ("Doorway", {"rounds": 0}, "rounds must be a whole number, 1 or more, got 0"),
        ("MyWayHome", {"frame_size": (72, 200)}, r"from \(1, 1\) to \(120, 160\), got \(72, 200\)"),
        ("MyWayHome", {"frame_size": 72}, "frame_size must be"),
        ("MyWayHome", {"frame_skip": 0}, "frame_skip must be a whole number, 1 or more, got 0"),
        ("DeadlyCorridor", {"skill": 6}, "skill must be a whole number, 1 to 5, got 6"),
        ("DeadlyCorridor", {"scenario": "basic"}, "scenario must be one of my_way_home, deadly_corridor"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ControlError, match=message):
        make_environment(f"hf_mech/{name}-v0", **options)


@pytest.mark.parametrize("name", OURS)
def test_a_step_without_an_episode_is_refused(name: str) -> None:
    with gymnasium.make(name) as environment, pytest.raises(ControlError, match="call reset"):
        environment.unwrapped.step(np.zeros_like(environment.action_space.sample()))
