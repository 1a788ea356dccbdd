"""A Ray cluster of two machines with a core each, on this one; for a process of its own, as Ray starts many."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import ray
from ray._private import services
from ray.cluster_utils import Cluster

START = 120.0  # seconds; Ray itself waits 30, too few for a busy machine


def two_machines() -> tuple[Cluster, Any]:
    """The cluster, connected, and its second machine."""
    look = services.get_node

    def patiently(*arguments: Any) -> Any:
        end = time.monotonic() + START
        while True:
            try:
                return look(*arguments)
            except RuntimeError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)

    services.get_node = patiently
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address)
    return cluster, node


def lose_when(cluster: Cluster, node: Any, begun: Callable[[], bool], done: Path, pattern: str) -> None:
    """Loses the machine as soon as the work has begun, and prints how many files of the pattern were there."""

    def lose() -> None:
        while not begun():
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)
        # One write of the whole line: Ray prints its own warnings of the loss from another thread.
        print(f"\nlost with {len(list(done.glob(pattern)))} done\n", end="", flush=True)

    Thread(target=lose, daemon=True).start()


def end(cluster: Cluster) -> None:
    """Ends the connection, which was open before and has to be open still, and the cluster."""
    assert ray.is_initialized()
    ray.shutdown()
    cluster.shutdown()
