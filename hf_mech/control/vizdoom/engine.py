"""A game engine that leaves nothing behind: no process, no file in the working folder, no shared memory."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

import vizdoom

from hf_mech.control.errors import ControlError
from hf_mech.control.vizdoom import engine_guard

SCENARIO_FOLDER = Path(vizdoom.scenarios_path)
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
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o700)
    if not os.access(program, os.X_OK):
        raise ControlError(
            f"No program can run in {tempfile.gettempdir()}, the folder for temporary files. Set TMPDIR to one where "
            "programs can."
        )
    return str(program)
