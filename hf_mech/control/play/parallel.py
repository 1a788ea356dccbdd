"""Many episodes in parallel environments, and how each of them ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tqdm.auto import tqdm

from hf_mech.control.data_errors import TrajectorySettingsError
from hf_mech.control.environments import Environment, make_environment
from hf_mech.control.errors import check_whole
from hf_mech.control.play.player import Player, Running, check_play, decide, endless, generator_of
from hf_mech.control.recording import MAX_STEPS
from hf_mech.control.seeds import episode_seed


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
    environment: str,
    episodes: Sequence[int],
    *,
    target_return: float,
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
        environment: the id of any environment that `make_environment` takes.
        episodes: the numbers of the episodes.
        target_return: the return to reach, in the environment's units.
        seed: of the evaluation; 0 or more.
        num_envs: environments that are played at a time. They are closed at the end, whatever happens.
        do_sample: sample each component of an action, instead of the most likely value. Every episode has random
            numbers of its own.
        temperature: of sampling.
        max_steps: the most steps to wait for the end of an episode.
        progress: show a bar where somebody looks.
        options: of `make_environment`.

    Returns:
        the scores, in the order of `episodes`.

    Raises:
        TrajectorySettingsError: no model, no finite return, no episodes, or `num_envs` is no whole number, 1 or more.
        EpisodeWithoutEndError: an episode of more than `max_steps` steps.
        SpaceError: the model was made for other observations or actions.
    """
    check_play(model, target_return)
    if not isinstance(episodes, Iterable):
        raise TrajectorySettingsError(
            f"episodes must be the numbers of the episodes, such as range(50), got {episodes!r}."
        )
    check_whole("num_envs", num_envs, 1, None, TrajectorySettingsError)
    seeds = [episode_seed(seed, "play", number) for number in episodes]
    if not seeds:
        raise TrajectorySettingsError("There are no episodes to play; give their numbers, such as range(50).")
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
