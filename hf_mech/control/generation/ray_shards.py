"""A data set of episodes made on several machines, with Ray.

    generate_with_ray(TrajectorySettings("hf_mech/MyWayHome-v0", num_train=8_000), "data/home", address="auto")

Each shard is one task of Ray. Its bytes depend on the settings alone, so a task of a machine that is lost runs again on
another one and gives the same file. The process that calls this writes the files; the machines share no disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hf_mech.control.data_errors import ShardError
from hf_mech.control.errors import ControlError, MissingExtraError
from hf_mech.control.generation.parquet_shards import prepare, shard_bytes, shards_of, write_shard
from hf_mech.control.generation.trajectories import TrajectorySettings

RETRIES = 10  # of a shard whose machine or process is lost; not for ever, since a shard may be what kills it


def generate_with_ray(
    settings: TrajectorySettings, folder: str | Path, *, address: str | None = None, num_cpus: float = 1
) -> Path:
    """Generates all shards on the machines of a Ray cluster and writes them into a folder of this one.

    Every machine needs hf_mech with the environment's extra. An environment of your own is found there by an id that
    names its module, such as "my_package.my_module:MyEnvironment-v0".

    Args:
        settings: of the data set.
        folder: of this machine. A shard is there whole or not at all.
        address: of the cluster, as `ray.init` takes it; None makes a cluster of this machine alone. A connection that
            is open already is used instead, and stays open.
        num_cpus: the cores that a shard occupies.

    Returns:
        The folder, for `load_dataset(str(folder))`: the same files as `write_shards` makes.

    Raises:
        MissingExtraError: Ray is not installed.
        ControlError: see `TrajectorySettings`.
        ShardError: a shard failed, or its machine or process was lost too often. Whole shards stay.
        OutputError: the folder cannot be written.
    """
    ray = _ray()
    prepare(settings, folder)
    connects = not ray.is_initialized()
    if connects:
        ray.init(address=address)
    task = ray.remote(num_cpus=num_cpus, max_retries=RETRIES)(shard_bytes)
    # Files that wait to be written occupy Ray's memory, so they are written as they come.
    running: dict[Any, Any] = {task.remote(settings, *shard): shard for shard in shards_of(settings)}
    try:
        while running:
            (done, *_), _ = ray.wait(list(running))
            split, shard = running.pop(done)
            write_shard(folder, split, shard, _content(ray, done, f"Shard {shard} of {split!r}"))
    finally:
        for left in running:
            ray.cancel(left)
        if connects:
            ray.shutdown()
    return Path(folder)


def _content(ray: Any, done: Any, name: str) -> bytes:
    try:
        content: bytes = ray.get(done)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ControlError):
            raise cause from None
        raise ShardError(
            f"{name} could not be generated on the cluster: {cause or error!r}. Shards that are whole stay."
        ) from error
    return content


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", "ray") from error
    return ray
