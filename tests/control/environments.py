"""Environments and helpers that the tests share."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Space

from hf_mech.control import Policy
from hf_mech.control.environments import Environment


class Fixed(gymnasium.Env[Any, Any]):
    """Shows its observation space's sample, and remembers the last action."""

    def __init__(self, action_space: Space[Any], observation_space: Space[Any] | None = None) -> None:
        self.action_space = action_space
        self.observation_space = observation_space or Box(0.0, 1.0, (2,), np.float64)
        self.infos: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.action = action
        return self.observation_space.sample(), np.float64(1), False, False, self.infos


def play(environment: Environment, policy: Policy, seed: int) -> dict[str, Any]:
    """One episode: its observations, actions and rewards, and how it ended."""
    observation, info = environment.reset(seed=seed)
    policy.reset(environment, np.random.default_rng(seed))
    observations, actions, rewards = [observation], [], []
    terminated = truncated = False
    while not (terminated or truncated):
        action = policy(observation, info)
        observation, reward, terminated, truncated, info = environment.step(action)
        actions.append(action)
        rewards.append(reward)
        observations.append(observation)
    return {
        "observations": np.stack(observations),
        "actions": np.stack(actions),
        "rewards": np.array(rewards),
        "terminated": terminated,
        "truncated": truncated,
        "success": info["is_success"],
    }
