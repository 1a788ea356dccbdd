"""ViZDoom's scenarios as Gymnasium environments with multi-discrete actions and small frames."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import vizdoom
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError, check_frame_size, check_whole
from hf_mech.control.policies import Policy
from hf_mech.control.vizdoom import engine_guard
from hf_mech.control.vizdoom.scenarios import RENDERED, SCENARIO_FOLDER, SCENARIOS, Scenario

# ----------------------------------------------------------------------------------------------------------------------
# A game engine that leaves nothing behind: no process, no file in the working folder, no shared memory.


FAILURES = (
    vizdoom.ViZDoomErrorException,
    vizdoom.ViZDoomIsNotRunningException,
    vizdoom.ViZDoomUnexpectedExitException,
)
"""What the engine's library raises when the engine is gone."""
_ENGINE = Path(vizdoom.__file__).with_name("vizdoom")


def start_engine(owner: object, name: str, settings: dict[str, Any]) -> vizdoom.DoomGame:
    """Starts an engine that ends with its owner.

    The engine is closed when the owner is collected, when Python ends, and, on POSIX, when the process is killed.

    Args:
        owner: keeps the engine alive.
        name: of the scenario in the vizdoom package.
        settings: what differs from the scenario's own settings; see `vizdoom.DoomGame.set_config`.

    Returns:
        The running engine. Close it with `close`.

    Raises:
        ControlError: it does not start.
    """
    game = vizdoom.DoomGame()
    folder = tempfile.mkdtemp(prefix="hf-mech-engine-")
    finalizer = weakref.finalize(owner, _close, game, folder)
    try:
        game.load_config(str(SCENARIO_FOLDER / f"{name}.cfg"))
        game.set_config(settings)
        game.set_window_visible(False)
        game.set_doom_config_path(str(Path(folder, "engine.ini")))
        if os.name == "posix":
            game.set_vizdoom_path(_guarded(folder))
        game.init()
    except FAILURES as error:
        finalizer()
        raise ControlError(f"The engine of {name} does not start: {error}") from error
    except BaseException:
        finalizer()
        raise
    return game


def _close(game: vizdoom.DoomGame, folder: str) -> None:
    game.close()
    shutil.rmtree(folder, ignore_errors=True)


def _guarded(folder: str) -> str:
    """A program that runs the engine under the guard; ViZDoom asks for one without arguments of ours."""
    program = Path(folder, "engine")
    command = shlex.join([sys.executable, "-ISE", engine_guard.__file__, folder, str(os.getpid()), str(_ENGINE)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
    program.chmod(0o700)
    if not os.access(program, os.X_OK):
        raise ControlError(
            f"No program can run in {tempfile.gettempdir()}, the folder for temporary files. Set TMPDIR to one where "
            "programs can."
        )
    return str(program)


# ----------------------------------------------------------------------------------------------------------------------
# Frames made smaller by nearest neighbour, fast enough for every step of an engine.


class NearestNeighbour:
    """Resizes frames: pixel i of n comes from pixel floor(i * m / n) of m, as in OpenCV and torch.

    Args:
        source: (height, width) of the frames to come.
        target: (height, width) of the frames to make.
    """

    def __init__(self, source: tuple[int, int], target: tuple[int, int]) -> None:
        rows, columns = (np.arange(n) * m // n for m, n in zip(source, target, strict=True))
        self._pixels = rows[:, None] * source[1] + columns

    def __call__(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resizes a frame [height, width, 3]."""
        # A pixel as one item is copied at once.
        pixels = np.ascontiguousarray(frame).reshape(-1, 3).view("V3").reshape(-1)
        return pixels[self._pixels].view(np.uint8).reshape(*self._pixels.shape, 3)


# ----------------------------------------------------------------------------------------------------------------------
# A scenario of ViZDoom as a gymnasium environment with MultiDiscrete actions (Section 4 of M-SAT).


_MOST_SEED = 2**32


class ViZDoomEnvironment(gymnasium.Env[NDArray[np.uint8], NDArray[np.int64]]):
    """A scenario of ViZDoom.

    The engine starts with the first `reset`. A time-out truncates the episode and does not terminate it. The engine
    draws nothing after the end of an episode, so the last observation is the frame before it.

    Args:
        scenario: "my_way_home" or "deadly_corridor".
        frame_size: (height, width) of the observations.
        frame_skip: the engine's steps that a decision is kept for; the engine makes 35 a second.
        skill: the difficulty, 1 to 5.
        hud: whether the engine draws health and ammunition.
        render_mode: "rgb_array" to have `render` return what the engine drew, or None.

    Raises:
        ControlError: an option out of its range.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 35 / 4}

    def __init__(
        self,
        scenario: str,
        frame_size: tuple[int, int] = (72, 128),
        frame_skip: int = 4,
        skill: int = 5,
        hud: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.scenario = _checked(scenario, frame_size, frame_skip, skill)
        self.frame_skip, self.skill, self.hud, self.render_mode = frame_skip, skill, hud, render_mode
        self.metadata = {**self.metadata, "render_fps": 35 / frame_skip}
        self.action_space = MultiDiscrete(list(self.scenario.action_sizes))
        self.observation_space = Box(0, 255, (*frame_size, 3), np.uint8)
        self._resize = NearestNeighbour(RENDERED, frame_size)
        self._presses = _presses(self.scenario)
        self._game: vizdoom.DoomGame | None = None
        self._drawn: NDArray[np.uint8] | None = None
        self._over, self._success = True, False
        self.last_action: tuple[int, ...] = ()

    @property
    def game(self) -> vizdoom.DoomGame:
        """The running engine.

        Raises:
            ControlError: before the first `reset`, or after `close`.
        """
        if self._game is None:
            raise ControlError("The engine is not running; call reset() first.")
        return self._game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begins an episode; the same seed begins the same one."""
        super().reset(seed=seed)
        if self._game is None:
            self._game = start_engine(self, self.scenario.name, self._settings())
        if seed is None or seed >= _MOST_SEED:
            seed = int(self.np_random.integers(_MOST_SEED))
        self._game.set_seed(seed)
        self._engine_call(self._game.new_episode)
        self._over = self._success = False
        self.last_action = (0,) * len(self.scenario.components)
        return self._observe(), {"is_success": False}

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """One decision, kept for `frame_skip` steps of the engine."""
        if self._over:
            raise ControlError("The episode is over, or none has begun; call reset() first.")
        self.last_action = tuple(int(choice) for choice in action)
        buttons = [press for row, choice in zip(self._presses, action, strict=True) for press in row[choice]]
        reward = self._engine_call(self.game.make_action, buttons, self.frame_skip)
        # The engine may pay for the goal one step before it ends the episode.
        self._success = self._success or reward > self.scenario.goal_reward / 2
        self._over = self.game.is_episode_finished()
        truncated = self._over and not self._success and self.game.is_episode_timeout_reached()
        scaled = reward * self.scenario.reward_scale
        return self._observe(), scaled, self._over and not truncated, truncated, {"is_success": self._success}

    def render(self) -> NDArray[np.uint8] | None:
        """The last drawn frame [120, 160, 3], if `render_mode` is "rgb_array"."""
        return self._drawn if self.render_mode == "rgb_array" else None

    def expert(self) -> Policy:
        """The scripted expert of the scenario; it knows the map and where everything is."""
        module, name = self.scenario.expert.split(":")
        expert: Policy = getattr(importlib.import_module(module), name)()
        return expert

    def close(self) -> None:
        """Ends the engine; more than once does no harm."""
        game, self._game, self._over = self._game, None, True
        if game is not None:
            game.close()

    def _observe(self) -> NDArray[np.uint8]:
        state = self.game.get_state()
        if state is not None:
            self._drawn = state.screen_buffer
        assert self._drawn is not None
        return self._resize(self._drawn)

    def _engine_call(self, call: Any, *arguments: Any) -> Any:
        """Calls the engine, and says so if it is gone."""
        try:
            return call(*arguments)
        except FAILURES as error:
            self.close()
            raise ControlError(
                "The game engine ended by itself or was killed; the next reset() starts another one."
            ) from error

    def _settings(self) -> dict[str, Any]:
        return {
            "available_buttons": [getattr(vizdoom.Button, button) for button in self.scenario.buttons],
            "screen_resolution": vizdoom.ScreenResolution.RES_160X120,
            "screen_format": vizdoom.ScreenFormat.RGB24,
            "doom_skill": self.skill,
            "render_hud": self.hud,
            "objects_info_enabled": self.scenario.shows_objects,
        }


def _presses(scenario: Scenario) -> list[list[list[bool]]]:
    """Which buttons each choice presses, [components][choices][buttons of the component]."""
    return [
        [[choice == i + 1 for i in range(len(buttons))] for choice in range(len(buttons) + 1)]
        for buttons in scenario.components
    ]


def _checked(scenario: str, frame_size: tuple[int, int], frame_skip: int, skill: int) -> Scenario:
    if scenario not in SCENARIOS:
        raise ControlError(f"scenario must be one of {', '.join(SCENARIOS)}, got {scenario!r}.")
    check_frame_size(frame_size, (1, 1), RENDERED)
    check_whole("frame_skip", frame_skip, 1)
    check_whole("skill", skill, 1, 5)
    return SCENARIOS[scenario]
