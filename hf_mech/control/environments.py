"""One factory for all environments: gymnasium's registry, and one form of actions, observations and success."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError

NAMESPACE = "hf_mech"
_SCENARIOS = {"MyWayHome": "my_way_home", "DeadlyCorridor": "deadly_corridor"}

Environment = gymnasium.Env[NDArray[Any], NDArray[np.int64]]


def register_environments() -> None:
    """Makes the environments of hf_mech known to `gymnasium.make`; called when `hf_mech.control` is imported."""
    for name, scenario in _SCENARIOS.items():
        gymnasium.register(
            f"{NAMESPACE}/{name}-v0",
            entry_point="hf_mech.control.vizdoom.environment:ViZDoomEnvironment",
            kwargs={"scenario": scenario},
        )
    gymnasium.register(
        f"{NAMESPACE}/Rooms-v0",
        entry_point="hf_mech.control.rooms:RoomsEnvironment",
        max_episode_steps=200,
    )
    gymnasium.register(f"{NAMESPACE}/Doorway-v0", entry_point="hf_mech.control.doorway:DoorwayEnvironment")
    gymnasium.register(f"{NAMESPACE}/BabyAI-v0", entry_point="hf_mech.control.babyai:BabyAIEnvironment")


def make_environment(id: str, **options: Any) -> Environment:
    """Any environment of gymnasium, in the form that policies, recordings and models use.

    Actions are arrays of whole numbers, one a component: `Discrete(n)` becomes `MultiDiscrete([n])`. Observations are
    uint8 frames [height, width, 3] or float32 vectors [features]. `info["is_success"]` is there after every step.

    Args:
        id: such as "hf_mech/MyWayHome-v0" or "CartPole-v1".
        options: for `gymnasium.make`, which hands those that it does not know to the environment.

    Returns:
        The environment. Close it in the end: `with make_environment(...) as environment:` does.

    Raises:
        ControlError: no such environment; no such option, or one out of its range; actions or observations of another
            kind.
        MissingExtraError: the environment needs a package that is not installed.

    Example:

    ```python
    >>> with make_environment("CartPole-v1") as environment:
    ...     environment.action_space
    MultiDiscrete([2])

    ```
    """
    if not isinstance(id, str | gymnasium.envs.registration.EnvSpec):
        raise ControlError(
            f"An environment is given by its id, such as 'CartPole-v1', got {id!r}. A class of your own gets one by "
            "gymnasium.register(id, entry_point=...), which takes a function that wraps an environment, too."
        )
    try:
        environment = gymnasium.make(id, **options)
    except gymnasium.error.UnregisteredEnv as error:
        ours = ", ".join(sorted(name for name in gymnasium.registry if name.startswith(f"{NAMESPACE}/")))
        raise ControlError(
            f"No environment has the id {id!r}. Those of hf_mech are {ours}; for one of another package, import that "
            f"package first. ({error})"
        ) from error
    except TypeError as error:
        raise ControlError(f"{id} cannot be made with the options {options}: {error}") from error
    try:
        return MultiDiscreteEnvironment(environment)
    except BaseException:
        environment.close()
        raise


class MultiDiscreteEnvironment(gymnasium.Wrapper[NDArray[Any], NDArray[np.int64], Any, Any]):
    """An environment with the actions, observations and infos that [`make_environment`] promises.

    Args:
        environment: to be wrapped.

    Raises:
        ControlError: actions or observations of another kind.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
        self._name = name
        self._sizes, self._start = _components(environment.action_space, name)
        self._is_frame, self.observation_space = _observations(environment.observation_space, name)
        self.action_space = MultiDiscrete(self._sizes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[Any], Any]:
        """Begins an episode; the same seed begins the same one."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._observed(observation), {**info, "is_success": _success(info)}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[Any], float, bool, bool, Any]:
        """One decision.

        Args:
            action: [components], each a whole number from 0 to the size of its component - 1.

        Raises:
            ControlError: another number of components, or a value out of its range.
        """
        observation, reward, terminated, truncated, info = self.env.step(self._inner(action))
        done = (float(reward), bool(terminated), bool(truncated))
        return (self._observed(observation), *done, {**info, "is_success": _success(info)})

    def _observed(self, observation: Any) -> NDArray[Any]:
        seen: NDArray[Any] = np.asarray(observation, None if self._is_frame else np.float32)
        shape = self.observation_space.shape or ()
        if seen.shape != shape:
            raise ControlError(
                f"{self._name} must show observations of the shape {list(shape)} of its "
                f"observation_space, shows {list(seen.shape)}; mend its observation_space or its observations."
            )
        return seen

    def _inner(self, action: Any) -> Any:
        """The action in the wrapped environment's own form."""
        action = np.asarray(action)
        if action.shape != self._sizes.shape or action.dtype.kind not in "iu":
            raise ControlError(
                f"An action must be {len(self._sizes)} whole numbers, one a component, got {action.dtype} of shape "
                f"{list(action.shape)}: {action.tolist()}."
            )
        if (action < 0).any() or (action >= self._sizes).any():
            raise ControlError(
                f"The components of an action must be below {self._sizes.tolist()} and not negative, got "
                f"{action.tolist()}."
            )
        action = action + self._start
        space = self.env.action_space
        return int(action[0]) if isinstance(space, Discrete) else action.astype(space.dtype)


def _success(info: dict[str, Any]) -> bool:
    return bool(info.get("is_success", info.get("success", False)))


def _components(space: gymnasium.Space[Any], name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sizes of the components, [components], and the least value of each."""
    if isinstance(space, Discrete):
        return np.array([space.n], np.int64), np.array([space.start], np.int64)
    if isinstance(space, MultiBinary) and len(space.shape) == 1:
        return np.full(space.shape, 2, np.int64), np.zeros(space.shape, np.int64)
    if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1:
        return space.nvec.astype(np.int64), space.start.astype(np.int64)
    raise ControlError(
        f"{name} must have Discrete actions, or MultiDiscrete or MultiBinary ones in one row, has {space}; wrap it in "
        "a gymnasium.ActionWrapper that has."
    )


def _observations(space: gymnasium.Space[Any], name: str) -> tuple[bool, Box]:
    """Whether observations are frames, and their space."""
    if isinstance(space, Box) and len(space.shape) == 3 and space.shape[2] == 3 and space.dtype == np.uint8:
        return True, space
    if isinstance(space, Box) and len(space.shape) == 1:
        with np.errstate(over="ignore"):  # bounds that float32 does not reach become infinite
            return False, Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    raise ControlError(
        f"{name} must show uint8 frames [height, width, 3] or vectors [features], shows {space}; wrap it in one of "
        "gymnasium.wrappers, such as FlattenObservation or AddRenderObservation, or TransformObservation where only "
        "the order of the axes is another."
    )
