"""Runs a game engine, and ends it when the Python process that asked for it is gone.

A killed process cannot close its engine, so this program stands between the two:

    python engine_guard.py FOLDER PARENT ENGINE ARGUMENTS...

PARENT is the id of that process, and the engine works in FOLDER. When the engine or the parent ends, however it ends,
the program removes the folder and the engine's shared memory. It imports nothing of hf_mech, and little else, because
each environment waits for it.
"""

import contextlib
import os
import select
import shutil
import signal
import sys

_SECONDS_BETWEEN_LOOKS = 0.2
_INSTANCE = "+viz_instance_id"  # the engine's own argument
_SHARED_MEMORY = "/dev/shm/ViZDoom"
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def guard(folder: str, parent: int, command: list[str]) -> None:
    """Runs the engine until it or its parent ends.

    Args:
        folder: a temporary folder of this engine alone.
        parent: the id of the process that asked for the engine.
        command: the engine and its arguments.
    """
    os.setsid()  # signals to a terminal or to a group of processes, such as Ctrl+C, are the parent's to answer
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.chdir(folder)
    ended, held_by_engine = os.pipe()
    engine = os.fork()
    if engine == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _end_with_guard()
        os.set_inheritable(held_by_engine, True)  # it closes when the engine ends
        os.execv(command[0], command)
    os.close(held_by_engine)
    try:
        while os.getppid() == parent and not select.select([ended], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
            pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine, signal.SIGKILL)
        os.waitpid(engine, 0)
        _remove_shared_memory(command)
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_guard() -> None:
    """Has Linux kill this process when the guard is killed."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _remove_shared_memory(command: list[str]) -> None:
    """Removes the files that a killed engine leaves; one that ends by itself removes its own."""
    if _INSTANCE in command:
        instance = command[command.index(_INSTANCE) + 1]
        for part in ("SM", "MQCtr", "MQDoom"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{_SHARED_MEMORY}{part}{instance}")  # noqa: PTH108  (pathlib is slow to import)


if __name__ == "__main__":
    guard(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
