"""The two scenarios of M-SAT: their buttons and their rewards (Section 4, Appendix 7.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

TURN = ("TURN_LEFT", "TURN_RIGHT")
WALK = ("MOVE_FORWARD", "MOVE_BACKWARD")
STRAFE = ("MOVE_LEFT", "MOVE_RIGHT")
ATTACK = ("ATTACK",)


@dataclass(frozen=True)
class Scenario:
    """A scenario of ViZDoom.

    Attributes:
        name: of its files in the vizdoom package.
        components: the buttons of each component of an action. 0 presses none of them, i the i-th.
        reward_scale: what the engine's rewards are multiplied by.
        goal_reward: what the engine pays for the goal, before scaling.
        shows_objects: whether the engine reports where all objects are; costs a quarter of the speed.
    """

    name: str
    components: tuple[tuple[str, ...], ...]
    reward_scale: float
    goal_reward: float
    shows_objects: bool

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
        Scenario("my_way_home", (TURN, WALK), 1.0, 1.0, shows_objects=False),
        Scenario("deadly_corridor", (TURN, WALK, STRAFE, ATTACK), 0.01, 1000.0, shows_objects=True),
    )
}

__all__ = ["SCENARIOS", "Scenario"]
