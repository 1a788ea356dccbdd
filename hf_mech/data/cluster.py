"""Calls of a function on the machines of a Ray cluster. A call whose machine or process is lost is made again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

RETRIES = 10  # of a call whose machine or process is lost; not for ever, since a call may be what kills it
MISSING = "ray is not installed. Run: pip install 'hf-mech[ray]'"


class ClusterError(RuntimeError):
    """The machine or process of a call was lost too often."""


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """The module `ray`, connected to a cluster.

    Args:
        address: as `ray.init` takes it; None: of RAY_ADDRESS, or the cluster that runs on this machine, or else a new
            one of this machine alone. A connection that is open already is used instead, and stays open.

    Raises:
        ModuleNotFoundError: Ray is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING, name=error.name) from error
    connects = not ray.is_initialized()
    if connects:
        ray.init(address=address)
    try:
        yield ray
    finally:
        if connects:
            ray.shutdown()


def call_all(
    ray: Any,
    function: Callable[..., Any],
    calls: Iterable[tuple[str, tuple[Any, ...]]],
    at_once: int | None = None,
    **resources: float,
) -> Generator[tuple[str, Any], None, None]:
    """The results as they come, by the names of the calls. What still runs when it is closed is ended.

    Args:
        ray: connected.
        function: of a module that every machine has.
        calls: name and arguments; each is taken when its turn comes.
        at_once: the most calls at a time; None: as many as the cluster has room for.
        resources: of each call, such as `num_cpus`.

    Raises:
        ClusterError: the machine or process of a call was lost too often.
        Exception: what the function raises.
    """
    task, waiting = ray.remote(max_retries=RETRIES, num_returns=1, **resources)(function), iter(calls)
    running: dict[Any, str] = {}
    try:
        while True:
            for name, arguments in islice(waiting, None if at_once is None else at_once - len(running)):
                running[task.remote(*arguments)] = name
            if not running:
                return
            (done, *_), _ = ray.wait(list(running))
            name = running.pop(done)
            yield name, _result(ray, done, name)
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _result(ray: Any, done: Any, name: str) -> Any:
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from error
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"{name}: its machine or process was lost {RETRIES + 1} times. Was there too little memory?"
        ) from error
