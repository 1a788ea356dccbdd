"""A limit on this process's memory: a test of what must not be allocated fails, it does not fill the machine."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Refuses this process more than so many bytes above what it has, by MemoryError or torch's RuntimeError.

    Only Linux tells a process its own size; elsewhere there is no limit.
    """
    sizes = Path("/proc/self/statm")
    if not sizes.is_file():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(sizes.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
