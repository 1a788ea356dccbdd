"""The episodes of a data set, the same on every machine and with any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from hf_mech.control.data_errors import TrajectorySettingsError
from hf_mech.control.errors import check_whole
from hf_mech.control.policies import PolicyName, make_policy
from hf_mech.control.recording import Recording, environment_features
from hf_mech.control.seeds import MOST_EPISODES, Split
from hf_mech.data.shards import SHARDS


@dataclass(frozen=True)
class TrajectorySettings:
    """The settings of a data set of episodes.

    Args:
        environment: the id of an environment, for `make_environment`.
        policy: "expert", "noisy" or "random".
        seed: of all episodes; 0 or more.
        num_train: training episodes.
        num_test: test episodes; no seed of an episode is in both splits.
        noise, hold: see `hf_mech.control.policies.make_policy`.
        options: of the environment.

    Raises:
        TrajectorySettingsError: a seed or a number of episodes out of its range.
        PolicyError: no such policy, or noise or hold out of its range.
    """

    SPLITS: ClassVar[tuple[Split, ...]] = ("train", "test")
    environment: str
    policy: PolicyName = "expert"
    seed: int = 0
    num_train: int = 1_000
    num_test: int = 100
    noise: float = 0.2
    hold: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0, None, TrajectorySettingsError)
        for name in ("num_train", "num_test"):
            check_whole(name, getattr(self, name), 1, MOST_EPISODES, TrajectorySettingsError)
        make_policy(self.policy, self.noise, self.hold)

    def check(self) -> None:
        """Makes the environment and closes it.

        Raises:
            ControlError: it cannot be made; see `make_environment`.
        """
        self.features()

    def features(self) -> datasets.Features:
        """The columns and their types, as `hf_mech.control.rows` explains them."""
        return environment_features(self.environment, dict(self.options))

    def episodes(self, split: Split) -> int:
        """The number of episodes of a split."""
        return self.num_train if split == "train" else self.num_test

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one of `SHARDS` shards, whole episodes, one table each.

        Raises:
            EpisodeWithoutEndError: an episode that does not end.
        """
        episodes = self.episodes(split)
        numbers = range(episodes * shard // SHARDS, episodes * (shard + 1) // SHARDS)
        if numbers:  # an environment may take a second to start
            policy = make_policy(self.policy, self.noise, self.hold)
            schema = self.features().arrow_schema
            recording = Recording(self.environment, dict(self.options), policy, self.seed, split, schema)
            yield from recording.tables(numbers)
