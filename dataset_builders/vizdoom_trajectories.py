"""Episodes of two scenarios of ViZDoom, for training decision transformers offline (Section 4 of M-SAT).

    load_dataset("hf_mech/vizdoom_trajectories", "my_way_home-expert", num_train=1_000, num_test=100, seed=0)
    load_dataset("hf_mech/vizdoom_trajectories", "deadly_corridor-noisy", noise=0.3, num_proc=2)

The rows come from `hf_mech.control.generation`, which knows nothing of ViZDoom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import pyarrow as pa

from hf_mech.control.episodes import Split
from hf_mech.control.errors import ControlError, check_frame_size
from hf_mech.control.generation import TrajectorySettings
from hf_mech.control.policies import PolicyName
from hf_mech.control.recording import children_end_with_us
from hf_mech.control.rows import features_of
from hf_mech.control.vizdoom.scenarios import RENDERED, SCENARIOS, Scenario

from ._base import SeededConfig, ShardedBuilder

if TYPE_CHECKING:
    # Gymnasium finds it by its name alone; the hash in the cache's name finds it here.
    import hf_mech.control.vizdoom.environment  # noqa: F401

ENVIRONMENTS = {"my_way_home": "hf_mech/MyWayHome-v0", "deadly_corridor": "hf_mech/DeadlyCorridor-v0"}
_SETTINGS: dict[str, tuple[PolicyName, ...]] = {"noise": ("noisy",), "hold": ("noisy", "random")}

_DESCRIPTION = """\
Whole episodes of ViZDoom's {title}, one row a step, played by {policy}. Actions have {components} components of the \
sizes {sizes}, and frames are {height} x {width} RGB. Episodes of the two splits never have the same seed."""
_POLICIES = {
    "expert": "a scripted expert with privileged information",
    "noisy": "a scripted expert, of whose decisions {noise:.0%} are replaced by random actions",
    "random": "a random policy",
}


@dataclass
class VizdoomTrajectoriesConfig(SeededConfig, settings=TrajectorySettings, without=("policy",)):
    """One scenario and policy: `my_way_home` or `deadly_corridor`, a hyphen, and `expert`, `noisy` or `random`.

    Args:
        noise: of the noisy policy alone, the probability that a decision is replaced by a random action.
        hold: of the noisy and the random policy, the steps that a random action is kept for.
        frame_size: (height, width) of the frames.
        skill: the difficulty of the game, 1 to 5.
    """

    noise: float | None = None
    hold: int | None = None
    frame_size: tuple[int, int] = (72, 128)
    skill: int = 5

    @property
    def scenario(self) -> Scenario:
        """The scenario that the name begins with."""
        return SCENARIOS[self.name.partition("-")[0]]

    @property
    def settings(self) -> TrajectorySettings:
        """The config as the generator takes it.

        Raises:
            ControlError: a setting out of its range, or one that the policy does not take; noise or hold out of its
                range; another frame size than (height, width).
        """
        scenario, _, policy = self.name.partition("-")
        given = {name: value for name in _SETTINGS if (value := getattr(self, name)) is not None}
        for name, value in given.items():
            if policy not in _SETTINGS[name]:
                raise ControlError(
                    f"The config {self.name!r} does not take {name}={value!r}; leave it out, or take {scenario}-"
                    f"{f' or {scenario}-'.join(_SETTINGS[name])}."
                )
        check_frame_size(self.frame_size, (1, 1), RENDERED)  # the description reads it before `check` runs
        values = {name: value for name, value in self.values().items() if value is not None}
        values |= {"environment": ENVIRONMENTS[scenario], "policy": policy}
        return TrajectorySettings(**values, options={"frame_size": tuple(self.frame_size), "skill": self.skill})


class VizdoomTrajectories(ShardedBuilder):
    """Splits `train` and `test` with the columns of `hf_mech.control.rows`; frames are lossless images.

    `hf_mech.control.windows` cuts context windows out of them.
    """

    PAPER = "moodley2024msat"
    SPLITS = TrajectorySettings.SPLITS
    BUILDER_CONFIG_CLASS = VizdoomTrajectoriesConfig
    BUILDER_CONFIGS: ClassVar[list[VizdoomTrajectoriesConfig]] = [
        VizdoomTrajectoriesConfig(name=f"{scenario}-{policy}")
        for scenario in ENVIRONMENTS
        for policy in get_args(PolicyName)
    ]
    config: VizdoomTrajectoriesConfig

    def _prepare_split(self, *args: Any, **kwargs: Any) -> None:
        with children_end_with_us():
            super()._prepare_split(*args, **kwargs)

    def describe(self) -> str:
        """The scenario, the policy, the actions and the frames."""
        settings, scenario = self.config.settings, self.config.scenario
        height, width = self.config.frame_size
        return _DESCRIPTION.format(
            title=scenario.name.replace("_", " ").title(),
            policy=_POLICIES[settings.policy].format(noise=settings.noise),
            components=len(scenario.action_sizes),
            sizes=", ".join(map(str, scenario.action_sizes)),
            height=height,
            width=width,
        )

    def features(self) -> dict[str, Any]:
        """The columns and their types."""
        return features_of(None, self.config.scenario.action_sizes)

    def check(self) -> None:
        """Raises ControlError for wrong settings, and MissingExtraError without vizdoom."""
        self.config.settings.check()

    def tables(self, split: Split, shard: int) -> Iterator[pa.Table]:
        """The rows of one shard."""
        return self.config.settings.tables(split, shard)
