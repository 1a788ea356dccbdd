"""Recording episodes of any environment as a data set: `record`, and its parts, which the builders use."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import datasets
import gymnasium
import numpy as np
import pyarrow as pa
from datasets.builder import Key

from hf_mech.control.environments import make_environment
from hf_mech.control.episodes import MOST_EPISODES, Episode, Split, episode_seed
from hf_mech.control.errors import ControlError, check_whole
from hf_mech.control.policies import Policy, PolicyName, check_policy, make_policy
from hf_mech.control.rows import features_of, table_of

MAX_STEPS = 100_000
_POLICY_STREAM = 1  # apart from the environment's own stream, which the seed alone begins


def record(
    environment: str,
    policy: Policy | PolicyName,
    num_episodes: int,
    seed: int = 0,
    *,
    split: Split = "train",
    max_steps: int = MAX_STEPS,
    num_proc: int | None = None,
    cache_dir: str | None = None,
    **options: Any,
) -> datasets.Dataset:
    """Plays episodes and keeps them as a data set on disk, one row a step (see `hf_mech.control.rows`).

    Episode i has the seed `episode_seed(seed, split, i)`, so the rows do not depend on `num_proc`, and a longer
    recording begins with a shorter one. Each call plays anew; `save_to_disk` or `push_to_hub` keeps a recording.

    Args:
        environment: the id of any environment that [`make_environment`] takes.
        policy: an object with the methods of [`Policy`], or the name of one. Several processes get a copy each.
        num_episodes: 1 or more.
        seed: of the recording, 0 or more.
        split: of the seeds; episodes of two splits never have the same seed.
        max_steps: the most steps to wait for the end of an episode.
        num_proc: processes that play. Each of them has an environment of its own.
        cache_dir: the folder of the data, as in `load_dataset`.
        options: of `make_environment`.

    Returns:
        The data set, memory-mapped.

    Raises:
        ControlError: a number of episodes or of processes out of its range, an episode of more than `max_steps` steps,
            or what `make_environment`, `make_policy` and `episode_seed` refuse.
    """
    check_whole("num_episodes", num_episodes, 1, MOST_EPISODES)
    policy = make_policy(policy) if isinstance(policy, str) else policy
    check_policy(policy)
    if num_proc is not None:
        check_whole("num_proc", num_proc, 1)
    episode_seed(seed, split, 0)  # wrong ones are refused before work starts
    features = environment_features(environment, options)
    recording = Recording(environment, options, policy, seed, split, features.arrow_schema, max_steps)
    return built(recording.tables, list(range(num_episodes)), features, split, num_proc, cache_dir)


def environment_features(environment: str, options: dict[str, Any]) -> datasets.Features:
    """The columns of an environment's episodes, and their types."""
    with closing(make_environment(environment, **options)) as opened:
        space: Any = opened.observation_space
        sizes: Any = opened.action_space
        return features_of(None if len(space.shape) == 3 else space.shape[0], sizes.nvec.tolist())


@dataclass(frozen=True)
class Recording:
    """The episodes of a policy in an environment, by their numbers.

    Args:
        environment, options: for [`make_environment`].
        policy: decides.
        seed, split: for [`episode_seed`].
        schema: of the rows.
        max_steps: the most steps to wait for the end of an episode.
    """

    environment: str
    options: dict[str, Any]
    policy: Policy
    seed: int
    split: Split
    schema: pa.Schema
    max_steps: int = MAX_STEPS

    def tables(self, numbers: Iterable[int]) -> Iterator[pa.Table]:
        """The rows of these episodes, one table an episode, all played in one environment."""
        with (
            closing(make_environment(self.environment, **self.options)) as environment,
            ThreadPoolExecutor(1) as encoder,
        ):
            encoding: Future[pa.Table] | None = None
            for number in numbers:
                seed = episode_seed(self.seed, self.split, number)
                episode = record_episode(environment, self.policy, seed, self.max_steps)
                if encoding:
                    yield encoding.result()
                # While the next episode is played, as a frame takes as long to encode as a step to play.
                encoding = encoder.submit(table_of, episode, number, self.schema)
            if encoding:
                yield encoding.result()


def record_episode(
    environment: gymnasium.Env[Any, Any], policy: Policy, seed: int, max_steps: int = MAX_STEPS
) -> Episode:
    """Plays one episode, which depends on nothing but the arguments.

    Args:
        environment: of [`make_environment`]; stays open.
        policy: decides; its random numbers begin with the seed.
        seed: of the episode, for `environment.reset` and the policy.
        max_steps: the most steps to wait for the end.

    Raises:
        ControlError: the episode goes on for longer.
    """
    observation, info = environment.reset(seed=seed)
    policy.reset(environment, np.random.default_rng([seed, _POLICY_STREAM]))
    observations, actions, rewards, success = [], [], [], []
    for _ in range(max_steps):
        action = policy(observation, info)
        # Environments may write the next observation into the same array.
        observations.append(np.array(observation))
        actions.append(np.array(action, np.int64))
        observation, reward, terminated, truncated, info = environment.step(action)
        rewards.append(reward)
        success.append(info["is_success"])
        if terminated or truncated:
            return Episode(
                observations=np.stack(observations),
                actions=np.stack(actions),
                rewards=np.array(rewards, np.float32),
                success=np.array(success, bool),
                terminated=bool(terminated),
                truncated=bool(truncated),
                seed=seed,
                final_observation=np.array(observation),
            )
    raise ControlError(
        f"The episode of seed {seed} has no end after {max_steps} steps. Give the environment a limit of time: "
        "make_environment(id, max_episode_steps=...)."
    )


def built(
    tables: Any,
    items: list[Any],
    features: datasets.Features,
    split: str = "train",
    num_proc: int | None = None,
    cache_dir: str | None = None,
) -> datasets.Dataset:
    """A data set on disk of the tables that a function yields for a list of items.

    Args:
        tables: called with a part of the items, in each process.
        items: shared out between the processes, neighbours together.
        features: of the rows.
        split, num_proc, cache_dir: as in `load_dataset`.

    Raises:
        ControlError: as `tables` raises it, in whichever process.
    """
    # Every call has a folder of its own: what a policy or an environment does cannot be hashed.
    builder = _Builder(
        cache_dir=cache_dir,
        dataset_name="trajectories",
        config_id=uuid.uuid4().hex,
        tables=tables,
        items=items,
        rows=features,
        of=split,
    )
    try:
        with children_end_with_us():
            builder.download_and_prepare(num_proc=min(num_proc, len(items)) if num_proc else None)
    except _Failed as error:
        raise error.args[0] from None
    return builder.as_dataset(split=split)


@dataclass
class _Config(datasets.BuilderConfig):
    tables: Any = None
    items: list[Any] = field(default_factory=list)
    rows: datasets.Features | None = None
    of: str = "train"


class _Builder(datasets.ArrowBasedBuilder):
    BUILDER_CONFIG_CLASS = _Config

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=self.config.rows)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(name=self.config.of, gen_kwargs={"items": self.config.items})]

    def _generate_tables(self, items: list[Any]) -> Iterator[tuple[Any, pa.Table]]:
        try:
            for index, table in enumerate(self.config.tables(items)):
                yield Key(0, index), table
        except ControlError as error:
            raise _Failed(error) from error


class _Failed(datasets.exceptions.DatasetGenerationError):
    """Carries a ControlError out of a worker process and out of `datasets`, which replaces all errors but its own."""


# ----------------------------------------------------------------------------------------------------------------------
# Worker processes end with the process that started them, however that one ends.


SECONDS_BETWEEN_LOOKS = 0.2
_began: int | None = None  # the process in whose block children are forked
_is_registered = False


@contextmanager
def children_end_with_us() -> Iterator[None]:
    """Processes that are forked in the block end when this one is gone.

    Without it, the workers of a killed process wait for work for ever, with their game engines, and hold the locks of
    its files, so that the next process that wants these files waits for ever, too.
    """
    global _began, _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_watch)
        _is_registered = True
    before, _began = _began, os.getpid()
    try:
        yield
    finally:
        _began = before


def _watch() -> None:
    """In a child: watches its parent from now on."""
    global _began
    parent, _began = _began, None
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
