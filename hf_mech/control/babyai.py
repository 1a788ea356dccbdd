"""BabyAI: errands in a grid world, told in English; the levels and the expert of the package MiniGrid.

Needs the extra `minigrid`. Levels and expert are those of Minari's data sets `minigrid/BabyAI-*`, and
`read_minari(id, observe=observation_vector)` reads those.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, MissingExtraError

try:
    from minigrid.core.actions import Actions
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
    from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError
except ModuleNotFoundError as error:
    raise MissingExtraError("minigrid", "minigrid") from error

# ----------------------------------------------------------------------------------------------------------------------
# An observation as a vector: what every visible cell holds, where the player looks, and the words of the errand.


_NAMES = (
    *("ball", "box", "door", "key", "object", "blue", "green", "grey", "purple", "red", "yellow"),
    *("go", "open", "pick", "put", "to", "up", "next", "in", "front", "behind", "on", "left", "right"),
    *("a", "the", "of", "you", "your", "and", "then", "after", ","),
)
WORDS = {word: number for number, word in enumerate(_NAMES)}
"""All words of BabyAI's errands."""
MOST_WORDS = 10
_CELL = tuple(map(len, (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX)))
_CELLS, _DIRECTIONS = 7 * 7, 4
FEATURES = _CELLS * sum(_CELL) + _DIRECTIONS + MOST_WORDS * len(WORDS)


def observation_vector(observation: Mapping[str, Any]) -> NDArray[np.float32]:
    """An observation of MiniGrid as a vector of 0 and 1, [features].

    Args:
        observation: `image` [7, 7, 3], the kind, the colour and the state of every cell, all as numbers; `direction`,
            0 to 3; and `mission`, the errand in words.

    Raises:
        ControlError: an image of another size, as of an environment that sees more than 7 x 7 cells; an errand of more
            than ten words, or with a word that is not BabyAI's.
    """
    image = np.asarray(observation["image"], np.int64)
    if image.shape != (7, 7, 3):
        raise ControlError(f"The image must be [7, 7, 3], MiniGrid's usual view, got {list(image.shape)}.")
    words = re.findall(r"[a-z]+|,", observation["mission"])
    if len(words) > MOST_WORDS or not set(words) <= WORDS.keys():
        raise ControlError(
            f"An errand must have at most {MOST_WORDS} words, all of BabyAI's, got {observation['mission']!r}; take "
            "another level, or another vector of the observation."
        )
    starts = np.cumsum((0, *_CELL[:-1]))
    cells = np.zeros((_CELLS, sum(_CELL)), np.float32)
    np.put_along_axis(cells, image.reshape(_CELLS, 3) + starts, 1.0, 1)
    direction, errand = np.zeros(_DIRECTIONS, np.float32), np.zeros((MOST_WORDS, len(WORDS)), np.float32)
    direction[observation["direction"]] = 1.0
    errand[range(len(words)), [WORDS[word] for word in words]] = 1.0
    return np.concatenate([cells.ravel(), direction, errand.ravel()])


# ----------------------------------------------------------------------------------------------------------------------
# A level as an environment, and its expert.


class BabyAIEnvironment(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A level of BabyAI. The player sees 7 x 7 cells ahead, not through walls, and has to do what it is told.

    An action is 0 turn left, 1 turn right, 2 forward, 3 pick up, 4 drop, 5 open or close, 6 nothing. The return is
    1 - 0.9 (steps / most steps) if the errand is done, else 0.

    Args:
        level: the name of the level between "BabyAI-" and "-v0", such as "GoToLocal" or "UnlockPickup".
        render_mode: "rgb_array" to have `render` return the whole grid, or None.

    Raises:
        ControlError: no such level.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, level: str = "GoToLocal", render_mode: str | None = None) -> None:
        known = _levels()
        if level not in known:
            raise ControlError(f"level must be one of {', '.join(known)}, got {level!r}.")
        self.render_mode = render_mode
        self.grid = gymnasium.make(f"BabyAI-{level}-v0", render_mode=render_mode)
        self.action_space = Discrete(len(Actions))
        self.observation_space = Box(0.0, 1.0, (FEATURES,), np.float32)
        self.last_action: Actions | None = None
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode; the same seed begins the same one."""
        super().reset(seed=seed)
        with contextlib.redirect_stdout(io.StringIO()):  # it tells of every grid that it throws away
            observation, _ = self.grid.reset(seed=seed)
        self.last_action, self._over = None, False
        return observation_vector(observation), {"is_success": False, "mission": observation["mission"]}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One action."""
        if self._over:
            raise ControlError("The episode is over, or none has begun; call reset() first.")
        self.last_action = Actions(int(action))
        observation, reward, terminated, truncated, _ = self.grid.step(self.last_action)
        self._over = bool(terminated or truncated)
        info = {"is_success": float(reward) > 0, "mission": observation["mission"]}
        return observation_vector(observation), float(reward), terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """The whole grid from above, if `render_mode` is "rgb_array"; what the player sees is lighter."""
        picture: Any = self.grid.render()
        return picture

    def close(self) -> None:
        """Ends the level."""
        self.grid.close()

    def expert(self) -> BabyAIExpert:
        """MiniGrid's bot, which explores as the player has to, and plans."""
        return BabyAIExpert()


class BabyAIExpert:
    """MiniGrid's `BabyAIBot`: knows the seen part of the grid, and plans anew after an action that is not its own.

    Where such an action has opened a box, the box is gone and maybe the errand with it; then it does nothing.
    """

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode."""
        self._player: BabyAIEnvironment = environment.unwrapped  # type: ignore[assignment]
        self._bot: BabyAIBot | None = BabyAIBot(self._player.grid.unwrapped)

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """[action]."""
        action = Actions.done
        if self._bot:
            try:
                action = self._bot.replan(self._player.last_action)
            except DisappearedBoxError:
                self._bot = None
        return np.array([action], np.int64)


def _levels() -> list[str]:
    found = (re.fullmatch(r"BabyAI-(.+)-v0", name) for name in gymnasium.registry)
    return sorted(match[1] for match in found if match)
