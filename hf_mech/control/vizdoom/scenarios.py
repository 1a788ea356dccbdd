"""The scenarios: buttons, rewards, time limits, and the walls of their maps."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import vizdoom
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError

# ----------------------------------------------------------------------------------------------------------------------
# The walls of a scenario, read from its map: experts know them, observations do not show them.


SCENARIO_FOLDER = Path(vizdoom.scenarios_path)
_BLOCK = re.compile(r"(\w+)\s*(?://[^\n]*)?\s*\{([^}]*)\}")
_FIELD = re.compile(r"(\w+)\s*=\s*([^;]+);")


@cache
def walls(scenario: str, opaque: bool = False) -> NDArray[np.float64]:
    """The lines that stop a player.

    Args:
        scenario: its name in the vizdoom package.
        opaque: only those that stop looks and bullets too.

    Returns:
        [walls, 2, 2]: the two ends of each, (x, y) in map units.

    Raises:
        ControlError: the scenario's file is not a map in the UDMF format.
    """
    text = _lump((SCENARIO_FOLDER / f"{scenario}.wad").read_bytes(), b"TEXTMAP", scenario).decode("latin-1")
    blocks = [(kind, dict(_FIELD.findall(body))) for kind, body in _BLOCK.findall(text)]
    vertices = np.array([[float(v["x"]), float(v["y"])] for kind, v in blocks if kind == "vertex"])
    lines = [line for kind, line in blocks if kind == "linedef"]
    solid = [line for line in lines if "sideback" not in line or (line.get("blocking") == "true" and not opaque)]
    return vertices[[[int(line["v1"]), int(line["v2"])] for line in solid]]


def _lump(wad: bytes, wanted: bytes, scenario: str) -> bytes:
    """One part of a WAD file: a header, the parts, and a directory of offsets, sizes and names."""
    kind, count, directory = struct.unpack_from("<4sii", wad)
    for entry in range(count if kind == b"PWAD" else 0):
        offset, size, name = struct.unpack_from("<ii8s", wad, directory + 16 * entry)
        if name.rstrip(b"\0") == wanted:
            return wad[offset : offset + size]
    raise ControlError(
        f"The map of {scenario} in the vizdoom package is not in the UDMF format; install vizdoom again."
    )


# ----------------------------------------------------------------------------------------------------------------------
# The two scenarios of M-SAT: their buttons and their rewards (Section 4, Appendix 7.2.2).


RENDERED = (120, 160)  # height and width of what the engine draws
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
            expert="hf_mech.control.vizdoom.experts:MyWayHomeExpert",
        ),
        Scenario(
            name="deadly_corridor",
            components=(TURN, WALK, STRAFE, ATTACK),
            reward_scale=0.01,
            goal_reward=1000.0,
            shows_objects=True,
            expert="hf_mech.control.vizdoom.experts:DeadlyCorridorExpert",
        ),
    )
}
