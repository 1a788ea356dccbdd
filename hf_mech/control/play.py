"""A trained model plays: one game, many side by side, or one to be watched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from hf_mech.control.environments import Environment, make_environment
from hf_mech.control.episodes import Episode, episode_seed
from hf_mech.control.errors import ControlError, check_whole
from hf_mech.control.recording import MAX_STEPS

_USUAL_RATE = 10.0
"""Pictures a second, of an environment that does not say."""

if TYPE_CHECKING:
    from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer


# ----------------------------------------------------------------------------------------------------------------------
# The model's part in an episode: its states, its decisions, and the return that it is told to reach.


class Player(Protocol):
    """A model that decides in a batch of environments and remembers their episodes, such as `MSATDecisionTransformer`.

    Attributes:
        config: its `check_spaces` refuses environments of other observations or actions. Its `environment`,
            `{"id": ..., "kwargs": {...}}`, and its `target_return` are the defaults of [`play`] and
            [`watch`], if it has them.
    """

    config: Any

    def start_context(self, batch_size: int = 1) -> Any:
        """Empty memories, a row for each environment."""

    def act(
        self,
        states: Tensor,  # [rows, *state_shape]
        context: Any,
        returns_to_go: Sequence[float],  # [rows]
        *,
        begins: Sequence[bool],  # [rows]
        rows: Sequence[int],
        do_sample: bool,
        temperature: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        """The actions, [rows, components]; the other rows of the context wait."""


@dataclass
class Running:
    """The episode of one environment."""

    number: int  # among those that are played
    seed: int
    wanted: float
    generator: torch.Generator | None
    total_return: float = 0.0
    length: int = 0


def resolve_play(
    model: Any, environment: str | None, target_return: float | None, options: dict[str, Any]
) -> tuple[str, float, dict[str, Any]]:
    """The environment, its options and the target return; those of the model's config where none are given.

    Raises:
        ControlError: no model that decides, no environment, or no finite return.
    """
    if not hasattr(model, "start_context") or not hasattr(model, "act"):
        raise ControlError(
            "A player is a model with start_context and act, such as MSATDecisionTransformer, got "
            f"{model if isinstance(model, str) else type(model).__name__!r}. Load one with "
            "AutoModel.from_pretrained(...).eval()."
        )
    config = getattr(model, "config", None)
    own = getattr(config, "environment", None) or {}
    environment = own.get("id") if environment is None else environment
    if environment is None:
        raise ControlError(
            "The model's config names no environment; give its id, such as 'hf_mech/Rooms-v0', and its options."
        )
    if environment == own.get("id"):
        options = {**own.get("kwargs", {}), **options}
    target_return = getattr(config, "target_return", None) if target_return is None else target_return
    try:
        finite = not isinstance(target_return, bool | str) and math.isfinite(target_return)  # type: ignore[arg-type]
    except TypeError:
        finite = False
    if not finite:
        raise ControlError(
            "target_return must be a finite number in the environment's units, such as the return of a good training "
            f"episode, got {target_return!r}."
        )
    return environment, target_return, options  # type: ignore[return-value]


def as_states(observations: NDArray[Any]) -> Tensor:
    """Observations as the model reads them: frames [..., height, width, 3] -> [..., 3, height, width]; vectors as they
    are."""
    frames = observations.dtype == np.uint8 and observations.ndim >= 4
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(observations, -1, -3) if frames else observations))


def generator_of(model: Player, seed: int) -> torch.Generator:
    """The random numbers of an episode, on the model's device."""
    device = next(model.parameters()).device if isinstance(model, torch.nn.Module) else torch.device("cpu")
    return torch.Generator(device).manual_seed(seed)


def decide(
    model: Player,
    context: Any,
    rows: list[int],
    running: Sequence[Running | None],
    observations: NDArray[Any],
    do_sample: bool,
    temperature: float,
) -> NDArray[np.int64]:
    """The actions of these rows, [rows, components]: in one batch, or row by row where each has a generator."""
    states = as_states(observations)
    actions = []
    for group in [[row] for row in rows] if do_sample else [rows]:
        episodes = [one for row in group if (one := running[row]) is not None]
        actions.append(
            model.act(
                states[group],
                context,
                [one.wanted for one in episodes],
                begins=[one.length == 0 for one in episodes],
                rows=group,
                do_sample=do_sample,
                temperature=temperature,
                generator=episodes[0].generator,
            )
        )
    chosen: NDArray[np.int64] = torch.cat(actions).cpu().numpy()
    return chosen


def endless(seed: int, max_steps: int) -> ControlError:
    return ControlError(
        f"The episode of seed {seed} has no end after {max_steps} steps. Give the environment a limit of time: "
        "max_episode_steps=..., or max_steps more."
    )


# ----------------------------------------------------------------------------------------------------------------------
# Many episodes in parallel environments, and how each of them ended.


@dataclass(frozen=True)
class Score:
    """The end of a played episode.

    Attributes:
        seed: of the episode.
        total_return: the sum of its rewards, in the environment's units.
        success: whether the task was solved.
        length: the number of decisions.
    """

    seed: int
    total_return: float
    success: bool
    length: int


def play(
    model: Player,
    environment: str | None = None,
    episodes: Sequence[int] = range(50),
    *,
    target_return: float | None = None,
    seed: int = 0,
    num_envs: int = 8,
    do_sample: bool = False,
    temperature: float = 1.0,
    max_steps: int = MAX_STEPS,
    progress: bool = True,
    **options: Any,
) -> list[Score]:
    """Plays held-out episodes. A score depends on its episode alone, not on `num_envs` or the other episodes.

    Args:
        model: decides; on its own device, and in evaluation mode.
        environment: the id of any environment that `make_environment` takes; by default the one that the model's config
            names, made as it was for the training.
        episodes: the numbers of the episodes.
        target_return: the return to reach, in the environment's units; by default that of the model's config.
        seed: of the evaluation; 0 or more.
        num_envs: environments that are played at a time. They are closed at the end, whatever happens.
        do_sample: sample each component of an action, instead of the most likely value. Every episode has random
            numbers of its own.
        temperature: of sampling.
        max_steps: the most steps to wait for the end of an episode.
        progress: show a bar where somebody looks.
        options: of `make_environment`, besides those of the model's config.

    Returns:
        the scores, in the order of `episodes`.

    Raises:
        ControlError: no model, no environment, no finite return, no episodes, `num_envs` is no whole number, 1 or
            more, or an episode has more than `max_steps` steps.
        MSATError: the model was made for other observations or actions.
    """
    environment, target_return, options = resolve_play(model, environment, target_return, options)
    if not isinstance(episodes, Iterable):
        raise ControlError(f"episodes must be the numbers of the episodes, such as range(50), got {episodes!r}.")
    check_whole("num_envs", num_envs, 1)
    seeds = [episode_seed(seed, "play", number) for number in episodes]
    if not seeds:
        raise ControlError("There are no episodes to play; give their numbers, such as range(50).")
    waiting = list(enumerate(seeds))[::-1]
    scores: dict[int, Score] = {}

    def next_episode() -> Running:
        number, own = waiting.pop()
        return Running(number, own, target_return, generator_of(model, own) if do_sample else None)

    with ExitStack() as stack:
        count = min(num_envs, len(seeds))
        opened = [stack.enter_context(closing(make_environment(environment, **options))) for _ in range(count)]
        model.config.check_spaces(opened[0].observation_space, opened[0].action_space)
        together = _together(opened)
        bar = stack.enter_context(
            tqdm(total=len(seeds), desc="episodes", unit="episode", disable=None if progress else True, leave=False)
        )
        context = model.start_context(count)
        running: list[Running | None] = [next_episode() for _ in range(count)]
        seeds_of = [one.seed for one in running if one is not None]
        observations, _ = together.reset(seed=list(seeds_of))
        space: Any = together.action_space
        actions = np.zeros(space.shape, np.int64)
        while any(running):
            rows = [row for row, one in enumerate(running) if one is not None]
            actions[rows] = decide(model, context, rows, running, observations, do_sample, temperature)
            observations, rewards, terminated, truncated, infos = together.step(actions)
            ended = terminated | truncated
            for row in rows:
                one = running[row]
                assert one is not None
                reward = float(rewards[row])
                one.wanted, one.total_return, one.length = (
                    one.wanted - reward,
                    one.total_return + reward,
                    one.length + 1,
                )
                if ended[row]:
                    scores[one.number] = Score(one.seed, one.total_return, bool(infos["is_success"][row]), one.length)
                    running[row] = next_episode() if waiting else None
                    bar.update()
                elif one.length == max_steps:
                    raise endless(one.seed, max_steps)
            if ended.any() and any(running):
                # An environment without an episode left must be stepped with the others: it begins its last one again.
                seeds_of = [seeds_of[row] if one is None else one.seed for row, one in enumerate(running)]
                observations, _ = together.reset(seed=list(seeds_of), options={"reset_mask": ended})
    return [scores[number] for number in range(len(seeds))]


def _together(opened: list[Environment]) -> SyncVectorEnv:
    """The environments as one of gymnasium's vector environments, whose episodes we begin ourselves."""

    def give(one: Environment) -> Callable[[], Environment]:
        return lambda: one

    return SyncVectorEnv([give(one) for one in opened], autoreset_mode=AutoresetMode.DISABLED)


# ----------------------------------------------------------------------------------------------------------------------
# One episode with everything that the model saw and that the environment showed.


@dataclass(frozen=True, eq=False)
class Watched:
    """An episode that was played with everything that the model saw.

    Attributes:
        episode: what happened.
        returns_to_go: what the model was told to reach, [steps]. `episode.returns_to_go` is what it did reach.
        pictures: what the environment rendered before each step and after the last one, [steps + 1, height, width, 3]
            uint8; empty if it renders nothing.
        score: its end.
    """

    episode: Episode
    returns_to_go: NDArray[np.float32]
    pictures: NDArray[np.uint8]
    score: Score

    def window(self, first: int, steps: int) -> dict[str, Tensor]:
        """Arguments of the model's `forward`: these steps as a batch of one window."""
        some = slice(first, first + steps)
        return {
            "states": as_states(self.episode.observations[some])[None],
            "actions": torch.from_numpy(self.episode.actions[some])[None],
            "returns_to_go": torch.from_numpy(self.returns_to_go[some])[None],
            "timesteps": torch.arange(len(self.episode))[some][None],
        }

    @torch.no_grad()
    def attention(self, model: MSATDecisionTransformer) -> tuple[NDArray[np.floating], list[str], int]:
        """The weights of all heads in the last window of the episode.

        Args:
            model: that played it, with eager attention.

        Returns:
            The weights, [layers, heads, tokens, tokens], the names of the tokens, and the window's first step.
        """
        steps = min(model.config.context_length, len(self.episode))
        first = len(self.episode) - steps
        output = model(**self.window(first, steps), output_attentions=True)
        weights: NDArray[np.floating] = torch.cat(output.attentions).float().numpy()
        return weights, model.config.token_names(range(first, first + steps)), first


def rendering_of(environment: str, options: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The option with which an environment draws pictures, none if it draws none; and its pictures a second.

    Args:
        environment: its id.
        options: of `make_environment`.
    """
    with closing(make_environment(environment, **options)) as opened:
        metadata = opened.metadata
    renders = "rgb_array" in metadata.get("render_modes", ())
    return {"render_mode": "rgb_array"} if renders else {}, float(metadata.get("render_fps") or _USUAL_RATE)


def watch(
    model: Player,
    environment: str | None = None,
    episode: int = 0,
    *,
    target_return: float | None = None,
    seed: int = 0,
    do_sample: bool = False,
    temperature: float = 1.0,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> Watched:
    """Plays one held-out episode and keeps everything that the model saw. The arguments are those of [`play`].

    Args:
        episode: its number.
        options: of `make_environment`; with `render_mode="rgb_array"` there are pictures.
    """
    environment, target_return, options = resolve_play(model, environment, target_return, options)
    own = episode_seed(seed, "play", episode)
    observations: list[NDArray[Any]] = []
    actions, rewards, success, wanted, pictures = [], [], [], [], []

    def drawn(opened: Environment) -> list[Any]:
        return [] if opened.render_mode is None else [np.array(opened.render())]

    with closing(make_environment(environment, **options)) as opened:
        model.config.check_spaces(opened.observation_space, opened.action_space)
        context = model.start_context(1)
        observation, _ = opened.reset(seed=own)
        pictures += drawn(opened)
        running = Running(0, own, target_return, generator_of(model, own) if do_sample else None)
        terminated = truncated = False
        while not (terminated or truncated):
            if running.length == max_steps:
                raise endless(own, max_steps)
            observations.append(np.array(observation))
            wanted.append(running.wanted)
            (action,) = decide(model, context, [0], [running], observations[-1][None], do_sample, temperature)
            observation, reward, terminated, truncated, info = opened.step(action)
            pictures += drawn(opened)
            actions.append(action)
            rewards.append(reward)
            success.append(info["is_success"])
            running.wanted -= float(reward)
            running.length += 1
    whole = Episode(
        observations=np.stack(observations),
        actions=np.stack(actions),
        rewards=np.array(rewards, np.float32),
        success=np.array(success, bool),
        terminated=terminated,
        truncated=truncated,
        seed=own,
        final_observation=np.array(observation),
    )
    end = Score(own, float(sum(map(float, rewards))), bool(success[-1]), running.length)
    return Watched(whole, np.array(wanted, np.float32), np.array(pictures, np.uint8), end)
