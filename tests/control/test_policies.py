"""Policies by name, noise and its seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control import ExpertPolicy, NoisyPolicy, RandomPolicy, make_environment, make_policy
from hf_mech.control.environments import MultiDiscreteEnvironment
from hf_mech.control.errors import ControlError
from tests.control.environments import Fixed, play


class Zeros:
    """Never does a thing."""

    def reset(self, environment: Any, generator: np.random.Generator) -> None:
        pass

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        return np.zeros(2, np.int64)


def actions(policy: Any, steps: int, seed: int = 0) -> NDArray[np.int64]:
    """The actions of one episode with components of 3 and 50 choices, [steps, 2]."""
    environment = MultiDiscreteEnvironment(Fixed(MultiDiscrete([3, 50])))
    observation, info = environment.reset(seed=seed)
    policy.reset(environment, np.random.default_rng(seed))
    return np.stack([policy(observation, info) for _ in range(steps)])


@pytest.mark.parametrize("policy", [RandomPolicy(), RandomPolicy(4), NoisyPolicy(Zeros(), 0.5, 3)])
def test_the_generator_alone_decides(policy: Any) -> None:
    first, again, other = actions(policy, 50), actions(policy, 50), actions(policy, 50, seed=1)
    assert first.dtype == np.int64
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_actions_are_uniform_and_held() -> None:
    taken = actions(RandomPolicy(hold=5), 15000)
    assert (taken.reshape(-1, 5, 2) == taken[::5, None]).all()
    assert np.bincount(taken[::5, 0]) / 3000 == pytest.approx([1 / 3] * 3, abs=0.05)
    assert set(taken[:, 1]) == set(range(50))


@pytest.mark.parametrize("noise", [0.0, 0.2, 1.0])
def test_noise_replaces_its_share_of_decisions(noise: float) -> None:
    replaced = (actions(NoisyPolicy(Zeros(), noise), 5000)[:, 1] != 0).mean()
    assert replaced == pytest.approx(noise * 49 / 50, abs=0.03)


def test_random_actions_of_a_noisy_policy_are_held() -> None:
    second = actions(NoisyPolicy(Zeros(), 0.1, hold=4), 2000)[:, 1]
    changes = np.flatnonzero(np.diff(second, prepend=0))
    assert (np.diff(changes) >= 4)[second[changes[:-1]] != 0].all()


@pytest.mark.parametrize("name", ["expert", "noisy", "random"])
def test_a_policy_by_name_plays_and_plays_the_same_again(name: Any) -> None:
    with make_environment("hf_mech/Rooms-v0") as environment:
        first, again = (play(environment, make_policy(name), 3) for _ in range(2))
        other = play(environment, make_policy(name), 4)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert not np.array_equal(first["observations"][0], other["observations"][0])


def test_a_policy_serves_many_environments() -> None:
    policy = ExpertPolicy()
    for name in ("Rooms", "Doorway", "Rooms"):
        with make_environment(f"hf_mech/{name}-v0") as environment:
            assert play(environment, policy, 0)["success"]


def test_an_environment_without_an_expert_is_named() -> None:
    environment = MultiDiscreteEnvironment(Fixed(Discrete(2)))
    with pytest.raises(ControlError, match=r"Fixed has no expert\. Take the policy 'random'"):
        make_policy("expert").reset(environment, np.random.default_rng(0))


def test_policies_want_environments_of_the_factory() -> None:
    with pytest.raises(ControlError, match=r"make the environment with hf_mech\.control\.make_environment"):
        RandomPolicy().reset(Fixed(Discrete(2)), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "best"}, "must be one of expert, noisy, random, got 'best'"),
        ({"name": "noisy", "noise": 1.5}, "noise must be a probability, 0 to 1, got 1.5"),
        ({"name": "noisy", "noise": float("nan")}, "noise must be a probability"),
        ({"name": "random", "hold": 0}, "hold must be a whole number, 1 or more, got 0"),
    ],
)
def test_wrong_settings_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ControlError, match=message):
        make_policy(**arguments)
