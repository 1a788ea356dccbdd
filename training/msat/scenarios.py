"""The environments of the experiment: where their episodes come from, and what their actions are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """An environment of the experiment.

    Attributes:
        environment: the id for `make_environment`.
        title: the name in tables and figures.
        builder: the name of its data set in `hf_mech/vizdoom_trajectories`; None: episodes are recorded.
        frames: whether observations are frames, so that their size can be chosen.
        expert_return: what the scripted expert gets, about, in the environment's units.
    """

    environment: str
    title: str
    builder: str | None
    frames: bool
    expert_return: float


SCENARIOS = {
    "my_way_home": Scenario("hf_mech/MyWayHome-v0", "My Way Home", "my_way_home", True, 0.975),
    "deadly_corridor": Scenario("hf_mech/DeadlyCorridor-v0", "Deadly Corridor", "deadly_corridor", True, 22.7),
    "rooms": Scenario("hf_mech/Rooms-v0", "Rooms", None, True, 0.97),
    "doorway": Scenario("hf_mech/Doorway-v0", "Doorway", None, False, 1.0),
}
"""By the name on the command line. The last two need no engine."""
