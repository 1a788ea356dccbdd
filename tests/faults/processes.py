"""Works in copies of a process that has imported the libraries: a fault then hits the work, not an import."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import torch

PATIENCE = 300.0
"""Seconds after which a work hangs."""
_GRACE = 10.0
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.work", "tests.faults.hub"])


def _in_child(do: Callable[[Path], Any], folder: Path, printed: Path) -> None:
    os.setsid()  # so that what it leaves behind is found
    torch.set_num_threads(1)
    with printed.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            do(folder)
        except Exception:  # noqa: BLE001  (as Python itself ends, but without waiting for threads)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(3)


def start(do: Callable[[Path], Any], folder: Path, printed: Path) -> BaseProcess:
    """Begins the work in the folder; what it prints goes to the file."""
    process = CONTEXT.Process(target=_in_child, args=(do, folder, printed))
    process.start()
    return process


def finish(process: BaseProcess) -> int | None:
    """The exit code; None for a work that hangs, which is killed."""
    process.join(PATIENCE)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    return code


def orphans(process: BaseProcess) -> int:
    """How many processes a dead one has left behind, after some seconds' grace; they are ended."""
    deadline = time.monotonic() + _GRACE
    while (left := _of_session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.2)
    for other in left:
        with suppress(psutil.NoSuchProcess):
            other.kill()
    return len(left)


def _of_session(session: int | None) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
