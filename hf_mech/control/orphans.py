"""Processes that share a work end with the one that began it, however that one ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_LOOKS = 0.2
_began: int | None = None  # the process in whose block children are forked
_is_registered = False


@contextmanager
def children_end_with_us() -> Iterator[None]:
    """Processes that are forked in the block end when this one is gone.

    If a process with a pool is killed, its workers wait for work for ever, with their game engines, and hold the locks
    of its files, so that the next one that wants them waits for ever, too.
    """
    global _began, _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_watch)
        _is_registered = True
    before, _began = _began, os.getpid()
    try:
        yield
    finally:
        _began = before


def _watch() -> None:
    """In a child: looks after its parent from now on."""
    global _began
    parent, _began = _began, None
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
