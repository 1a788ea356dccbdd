"""Policies that make data: random, an environment's expert, and a noisy version of another policy."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.spaces import MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, check_whole

PolicyName = Literal["expert", "noisy", "random"]


class Policy(Protocol):
    """Decides what to do in an environment of `make_environment`."""

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Called after each `environment.reset`; all random choices of the episode come from the generator."""

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """The action, [components], for the last observation and info."""


@runtime_checkable
class HasExpert(Protocol):
    """An environment that brings an expert of its own, which may look at what an observation does not show."""

    def expert(self) -> Policy:
        """A policy for this environment."""


class RandomPolicy:
    """Each component uniform and independent.

    Args:
        hold: the steps that each action is kept for.

    Raises:
        ControlError: hold is no whole number, 1 or more.
    """

    def __init__(self, hold: int = 1) -> None:
        check_whole("hold", hold, 1)
        self._hold = hold

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._sizes, self._generator, self._left = component_sizes(environment), generator, 0

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """A random action, [components]."""
        if self._left == 0:
            self._action, self._left = self._generator.integers(self._sizes), self._hold
        self._left -= 1
        return self._action


class ExpertPolicy:
    """The expert that the environment brings: `environment.unwrapped.expert()`.

    Raises (by `reset`):
        ControlError: the environment has none.
    """

    _environment: gymnasium.Env[Any, Any] | None = None

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode.

        Raises:
            ControlError: the environment has no expert.
        """
        if environment.unwrapped is not self._environment:
            self._environment = environment.unwrapped
            if not isinstance(self._environment, HasExpert):
                raise ControlError(
                    f"{type(self._environment).__name__} has no expert. Take the policy 'random', write one with the "
                    "methods of hf_mech.control.policies.Policy, or give the environment a method expert()."
                )
            self._expert = self._environment.expert()
        self._expert.reset(environment, generator)

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """The expert's action, [components]."""
        return self._expert(observation, info)


class NoisyPolicy:
    """Another policy whose decisions are sometimes replaced by random actions.

    Args:
        policy: the other one. It is asked at every step, also where its answer is not used.
        noise: the probability that a decision is replaced.
        hold: the steps that a random action is kept for.

    Raises:
        ControlError: noise or hold out of its range.
    """

    def __init__(self, policy: Policy, noise: float = 0.2, hold: int = 1) -> None:
        if not 0 <= noise <= 1:
            raise ControlError(f"noise must be a probability, 0 to 1, got {noise!r}.")
        check_whole("hold", hold, 1)
        self._policy, self._noise, self._hold = policy, noise, hold

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._policy.reset(environment, generator)
        self._sizes, self._generator, self._left = component_sizes(environment), generator, 0

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """The other policy's action or a random one, [components]."""
        action = self._policy(observation, info)
        if self._left == 0 and self._generator.random() < self._noise:
            self._random, self._left = self._generator.integers(self._sizes), self._hold
        if self._left == 0:
            return action
        self._left -= 1
        return self._random


def make_policy(name: PolicyName, noise: float = 0.2, hold: int = 1) -> Policy:
    """A policy by its name.

    Args:
        name: "expert", the environment's own; "noisy", its expert with noise; or "random".
        noise: of "noisy", the probability that a decision is replaced by a random action.
        hold: of "noisy" and "random", the steps that a random action is kept for.

    Raises:
        ControlError: no such policy, or a setting out of its range.
    """
    match name:
        case "expert":
            return ExpertPolicy()
        case "noisy":
            return NoisyPolicy(ExpertPolicy(), noise, hold)
        case "random":
            return RandomPolicy(hold)
    raise ControlError(f"A policy must be one of {', '.join(get_args(PolicyName))}, got {name!r}.")


def check_policy(policy: Any) -> None:
    """Raises ControlError unless the object has the methods of [`Policy`]."""
    methods = callable(policy) and callable(getattr(policy, "reset", None))
    if isinstance(policy, type) or not methods:
        got = f"the class {policy.__name__}; give an object of it" if isinstance(policy, type) else f"{policy!r}"
        raise ControlError(
            "A policy must be an object with the methods reset(environment, generator) and __call__(observation, "
            f"info), as hf_mech.control.Policy has them, or one of {', '.join(get_args(PolicyName))}; got {got}."
        )


def component_sizes(environment: gymnasium.Env[Any, Any]) -> NDArray[np.int64]:
    """The number of choices of each component of an action, [components].

    Raises:
        ControlError: the environment's actions are not MultiDiscrete.
    """
    if not isinstance(environment.action_space, MultiDiscrete):
        raise ControlError(
            f"Policies need MultiDiscrete actions, got {environment.action_space}; make the environment with "
            "hf_mech.control.make_environment."
        )
    return environment.action_space.nvec.astype(np.int64)
