"""Recording any environment: the same rows from any number of processes, and faults with their own types."""

import numpy as np
import pytest

from hf_mech.control import episode_seed, make_environment
from hf_mech.control.errors import (
    ControlError,
)
from hf_mech.control.policies import ExpertPolicy, RandomPolicy
from hf_mech.control.recording import record, record_episode
from hf_mech.control.rows import episodes_of
from tests.control.squares import ID
from tests.control.test_episodes import same


class Left:
    """A policy of a user: to the left, always."""

    def reset(self, environment, generator):
        self.size = environment.action_space.nvec[0]

    def __call__(self, observation, info):
        assert self.size == 2
        return np.array([0])


def test_an_episode_is_what_was_played():
    with make_environment(ID) as environment:
        episode = record_episode(environment, ExpertPolicy(), 5)
        again = record_episode(environment, ExpertPolicy(), 5)
        other = record_episode(environment, ExpertPolicy(), 6)
        observation, _ = environment.reset(seed=5)
        for seen, action, reward in zip(episode.observations, episode.actions, episode.rewards, strict=True):
            assert (observation == seen).all()
            observation, paid, _, _, info = environment.step(action)
            assert np.float32(paid) == reward
    assert (observation == episode.final_observation).all()
    assert info["is_success"]
    assert episode.terminated
    assert episode.success.tolist() == [False] * (len(episode) - 1) + [True]
    assert same(episode, again)
    assert episode.observations.shape != other.observations.shape or (episode.observations != other.observations).any()


def test_a_time_out_truncates():
    with make_environment(ID, endless=True) as environment:
        episode = record_episode(environment, RandomPolicy(), 0)
    assert (len(episode), episode.terminated, episode.truncated) == (40, False, True)


@pytest.mark.parametrize("policy", ["random", Left()])
def test_any_environment_and_any_policy(policy):
    rows = record("CartPole-v1", policy, 5, seed=2)
    assert rows.features["observation"].length == 4
    episodes = list(episodes_of(rows))
    assert [e.seed for e in episodes] == [episode_seed(2, "train", i) for i in range(5)]
    assert all(e.returns_to_go[0] == len(e) for e in episodes)  # CartPole pays 1 a step
    assert all((e.actions == 0).all() for e in episodes) == isinstance(policy, Left)


def test_processes_change_nothing_and_a_longer_recording_begins_with_a_shorter_one():
    one = record(ID, "random", 5, width=10).to_list()
    assert one == record(ID, "random", 5, width=10, num_proc=2).to_list()
    assert record(ID, "random", 6, width=10).to_list()[: len(one)] == one
    assert record(ID, "random", 5, seed=1, width=10).to_list() != one
    assert record(ID, "random", 5, split="test", width=10).to_list() != one


@pytest.mark.parametrize("num_proc", [None, 2])
def test_an_environment_without_a_limit_is_refused(num_proc):
    with pytest.raises(ControlError, match=r"no end after 30 steps.*max_episode_steps"):
        record(ID, Left2(), 2, endless=True, max_steps=30, num_proc=num_proc)


class Left2(Left):
    """For two components."""

    def reset(self, environment, generator):
        self.size = 2

    def __call__(self, observation, info):
        return np.array([0, 0])


class Wrong(Left2):
    """Gives three components."""

    def __call__(self, observation, info):
        return np.array([0, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((ID, "random", 0), "num_episodes must be"),
        ((ID, "random", True), "num_episodes must be"),
        ((ID, "best", 1), "policy must be one of"),
        ((ID, Left2, 1), r"reset\(environment, generator\) .*the class Left2; give an object of it"),
        ((ID, lambda observation, info: np.array([0, 0]), 1), "policy must be an object"),
        ((ID, None, 1), "policy must be an object"),
        ((ID, "random", 1, -1), "seed must be"),
        (("NoSuch-v0", "random", 1), "No environment has the id"),
        ((ID, Wrong(), 1), "An action must be 2 whole numbers"),
        (("CartPole-v1", "expert", 1), "has no expert"),
    ],
)
def test_faults_are_named_whoever_finds_them(arguments, said):
    with pytest.raises(ControlError, match=said):
        record(*arguments)


def test_a_number_of_processes_is_one_or_more():
    with pytest.raises(ControlError, match="num_proc must be a whole number, 1 or more, got 0"):
        record(ID, "random", 1, num_proc=0)
