"""Rooms seen from above: an environment without a game engine, its plan and how it is drawn."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, check_frame_size
from hf_mech.control.geometry import Navigator, distances_to_walls, hits, steer

# ----------------------------------------------------------------------------------------------------------------------
# The plan of the four rooms: where walls, doors and the goal are.


SIZE = 8.0
"""The side of the square that the rooms share. The inner walls cross in its middle."""
DOOR = 1.2
GOAL = (7.0, 1.0)
GOAL_RADIUS = 0.3
BODY = 0.2
"""The radius of the player."""


def walls() -> NDArray[np.float64]:
    """All walls, [walls, 2, 2]: the two ends of each, (x, y)."""
    border = [((0, 0), (SIZE, 0)), ((SIZE, 0), (SIZE, SIZE)), ((SIZE, SIZE), (0, SIZE)), ((0, SIZE), (0, 0))]
    middle, first, second, half = SIZE / 2, SIZE / 4, 3 * SIZE / 4, DOOR / 2
    pieces = [(0, first - half), (first + half, second - half), (second + half, SIZE)]
    upright = [((middle, low), (middle, high)) for low, high in pieces]
    flat = [((low, middle), (high, middle)) for low, high in pieces]
    return np.array(border + upright + flat, np.float64)


def room(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of the room, 0 to 3, of each point [..., 2]."""
    east, north = (points > SIZE / 2).astype(np.int64).swapaxes(0, -1)
    return np.asarray(east + 2 * north)


# ----------------------------------------------------------------------------------------------------------------------
# Draws the rooms in the first person: one ray for each column of the frame.


FIELD_OF_VIEW = 90.0
WALL_HEIGHT, GOAL_HEIGHT = 1.0, 0.5
CEILING, FLOOR, VEST = (56, 64, 72), (96, 88, 80), (40, 220, 60)
PAINTS = np.array([(200, 80, 70), (80, 110, 200), (220, 190, 80), (160, 90, 190)], np.float64)
"""The colour of the walls of each room, as seen from inside."""


class Painter:
    """Draws frames of one size.

    Args:
        height, width: of the frames.
    """

    def __init__(self, height: int, width: int) -> None:
        self._walls = walls()
        along = self._walls[:, 1] - self._walls[:, 0]
        # Walls that run north are darker, so that corners show.
        self._light = np.where(along[:, 0] == 0, 0.8, 1.0)
        edge = math.tan(math.radians(FIELD_OF_VIEW / 2))
        self._across = np.linspace(edge, -edge, width)  # from the left to the right
        self._rows = ((np.arange(height) + 0.5) / height - 0.5)[:, None]  # 0 is the horizon
        self._empty = np.empty((height, width, 3), np.uint8)
        self._empty[: height // 2], self._empty[height // 2 :] = CEILING, FLOOR

    def __call__(self, x: float, y: float, angle: float) -> NDArray[np.uint8]:
        """The frame [height, width, 3] that a player at (x, y) sees who looks to the angle, in degrees."""
        eye, turn = np.array([x, y]), math.radians(angle)
        ahead, left = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
        rays = ahead + self._across[:, None] * left
        distance, wall = hits(eye, rays, self._walls)
        # A point a little before the wall is in the room that the wall is seen from.
        paint = PAINTS[room(eye + 0.99 * distance[:, None] * rays)] * self._light[wall, None]
        paint = (paint / (1 + 0.15 * distance[:, None])).astype(np.uint8)
        frame = self._empty.copy()
        np.copyto(frame, paint, where=(np.abs(self._rows) < WALL_HEIGHT / 2 / distance)[..., None])
        near = _to_goal(np.array(GOAL) - eye, rays)
        stands = (self._rows > (0.5 - GOAL_HEIGHT) / near) & (self._rows < 0.5 / near) & (near < distance)
        np.copyto(frame, np.array(VEST, np.uint8), where=stands[..., None])
        return frame


def _to_goal(goal: NDArray[np.float64], rays: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance [rays] to the goal's cylinder, in lengths of the ray; infinite where a ray misses it."""
    along = rays @ goal
    square = (rays * rays).sum(1)
    inside = along * along - square * (goal @ goal - GOAL_RADIUS**2)
    with np.errstate(invalid="ignore"):
        return np.where((inside > 0) & (along > 0), (along - np.sqrt(inside)) / square, np.inf)


# ----------------------------------------------------------------------------------------------------------------------
# Four rooms with a player and a goal: small frames, two components, thousands of steps a second.


LEAST_SIZE, MOST_SIZE = (8, 8), (512, 512)
TURN, STEP = 15.0, 0.25
"""Degrees and lengths of a decision."""
COST = 0.001
"""Of a step; the goal pays 1."""


class RoomsEnvironment(gymnasium.Env[NDArray[np.uint8], NDArray[np.int64]]):
    """Find the goal, a green pillar that stands in the same place always; begin anywhere.

    An action is (0 no turn, 1 left, 2 right; 0 no step, 1 forward, 2 backward).

    Args:
        frame_size: (height, width) of the observations.
        render_mode: "rgb_array" to have `render` return the frame, or None.

    Raises:
        ControlError: a frame that is too small or too large.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, frame_size: tuple[int, int] = (36, 64), render_mode: str | None = None) -> None:
        check_frame_size(frame_size, LEAST_SIZE, MOST_SIZE)
        self.render_mode = render_mode
        self.action_space = MultiDiscrete([3, 3])
        self.observation_space = Box(0, 255, (*frame_size, 3), np.uint8)
        self._walls = walls()
        self._paint = Painter(*frame_size)
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begins an episode; the same seed begins the same one."""
        super().reset(seed=seed)
        self._over = False
        self.angle = float(self.np_random.uniform(0, 360))
        while True:
            self.x, self.y = self.np_random.uniform(0, SIZE, 2).tolist()
            if self._fits(self.x, self.y) and not self._at_goal():
                return self._observe(), {"is_success": False}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Turns, then walks; walls stop the player, who slides along them."""
        if self._over:
            raise ControlError("The episode is over, or none has begun; call reset() first.")
        turn, walk = (0, 1, -1)[action[0]], (0, 1, -1)[action[1]]
        self.angle = (self.angle + turn * TURN) % 360.0
        dx = walk * STEP * math.cos(math.radians(self.angle))
        dy = walk * STEP * math.sin(math.radians(self.angle))
        for step_x, step_y in ((dx, dy), (dx, 0.0), (0.0, dy)) if walk else ():
            if self._fits(self.x + step_x, self.y + step_y):
                self.x, self.y = self.x + step_x, self.y + step_y
                break
        self._over = self._at_goal()
        return self._observe(), self._over - COST, self._over, False, {"is_success": self._over}

    def render(self) -> NDArray[np.uint8] | None:
        """The frame, if `render_mode` is "rgb_array"."""
        return self._observe() if self.render_mode == "rgb_array" else None

    def expert(self) -> RoomsExpert:
        """Walks the shortest way to the goal."""
        return RoomsExpert()

    def _observe(self) -> NDArray[np.uint8]:
        return self._paint(self.x, self.y, self.angle)

    def _fits(self, x: float, y: float) -> bool:
        return bool(distances_to_walls(np.array([x, y]), self._walls) >= BODY)

    def _at_goal(self) -> bool:
        return math.dist((self.x, self.y), GOAL) < GOAL_RADIUS + BODY


class RoomsExpert:
    """Turns to the farthest point of the shortest way that it can walk to, and walks."""

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._player: RoomsEnvironment = environment.unwrapped  # type: ignore[assignment]

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """(turn, walk)."""
        me = self._player
        x, y = _navigator().target(me.x, me.y)
        off = math.degrees(math.atan2(y - me.y, x - me.x)) - me.angle
        return np.array(steer((off + 180.0) % 360.0 - 180.0, aimed_within=TURN / 2, walk_within=40.0))


@cache
def _navigator() -> Navigator:
    return Navigator(walls(), GOAL, clearance=1.5 * BODY, cell=0.1)
