"""The two scenarios of M-SAT: their buttons and their rewards (Section 4, Appendix 7.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

RENDERED = (120, 160)  # height and width of what the engine draws
TURN = ("TURN_LEFT", "TURN_RIGHT")
WALK = ("MOVE_FORWARD", "MOVE_BACKWARD")
STRAFE = ("MOVE_LEFT", "MOVE_RIGHT")
ATTACK = ("ATTACK",)
_HERE = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Scenario:
    """A scenario of ViZDoom.

    Attributes:
        name: of its files in the vizdoom package.
        components: the buttons of each component of an action. 0 presses none of them, i the i-th.
        reward_scale: what the engine's rewards are multiplied by.
        goal_reward: what the engine pays for the goal, before scaling.
        shows_objects: whether the engine reports where all objects are; costs a quarter of the speed.
        expert: its class, "module:name".
    """

    name: str
    components: tuple[tuple[str, ...], ...]
    reward_scale: float
    goal_reward: float
    shows_objects: bool
    expert: str

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """The number of choices of each component."""
        return tuple(len(buttons) + 1 for buttons in self.components)

    @property
    def buttons(self) -> tuple[str, ...]:
        """All buttons, in the order of the components."""
        return tuple(button for buttons in self.components for button in buttons)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="my_way_home",
            components=(TURN, WALK),
            reward_scale=1.0,
            goal_reward=1.0,
            shows_objects=False,
            expert=f"{_HERE}.my_way_home:MyWayHomeExpert",
        ),
        Scenario(
            name="deadly_corridor",
            components=(TURN, WALK, STRAFE, ATTACK),
            reward_scale=0.01,
            goal_reward=1000.0,
            shows_objects=True,
            expert=f"{_HERE}.deadly_corridor:DeadlyCorridorExpert",
        ),
    )
}
