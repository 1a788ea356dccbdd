"""Minari's data sets of offline reinforcement learning, read and written. Needs the extra `minari`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import datasets
import gymnasium
import numpy as np
import pyarrow as pa
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from numpy.typing import NDArray

from hf_mech.control.environments import make_environment
from hf_mech.control.episodes import Episode
from hf_mech.control.errors import ControlError, MissingExtraError
from hf_mech.control.recording import built
from hf_mech.control.rows import episodes_of, features_of, table_of
from hf_mech.hub.files import replacing

if TYPE_CHECKING:
    import minari


# ----------------------------------------------------------------------------------------------------------------------
# The package Minari, and what its data sets and ours have in common.


SUCCESS = ("is_success", "success")
"""Names of the info that tells success: gymnasium-robotics' and another; the first one is written."""
UNKNOWN_SEED = -1


def import_minari() -> Any:
    """The package. Raises MissingExtraError without it, or without its format HDF5."""
    try:
        import h5py  # noqa: F401
        import minari
    except ModuleNotFoundError as error:
        raise MissingExtraError("minari[hdf5]", "minari") from error
    return minari


# ----------------------------------------------------------------------------------------------------------------------
# A Minari data set as episodes and as rows.


Unfinished = Literal["refuse", "drop"]
Observe = Callable[[Any], NDArray[Any]]
"""Makes a frame or a vector of one observation, such as `hf_mech.control.babyai.observation_vector`."""


def read_minari(
    dataset: str | Path | minari.MinariDataset,
    *,
    observe: Observe | None = None,
    unfinished: Unfinished = "refuse",
    num_proc: int | None = None,
    cache_dir: str | None = None,
) -> datasets.Dataset:
    """A Minari data set as rows (see `hf_mech.control.rows`), on disk.

    Args:
        dataset: a data set, its id, or its folder. `minari.load_dataset(id, download=True)` downloads one.
        observe: makes a frame or a vector of each observation, where those of the data set are neither, such as dicts;
            `hf_mech.control.babyai.observation_vector` reads `minigrid/BabyAI-*`.
        unfinished: "refuse" episodes without an end, or "drop" them: their returns-to-go are unknown.
        num_proc, cache_dir: as in `load_dataset`.

    Returns:
        The rows. Vectors and rewards of float64 become float32. `success` is the info `is_success` or `success`, and
        False where there is none; `seed` is -1 where it is unknown.

    Raises:
        ControlError: no such data set; other spaces than frames, vectors and discrete actions; or an episode that does
            not fit them, or, without `unfinished="drop"`, has no end.
        MissingExtraError: Minari is not installed.
    """
    opened = _opened(dataset)
    ids = [int(i) for i in opened.episode_indices]
    features = features_of(_features(opened, observe), _sizes(opened))
    if unfinished == "drop":
        ids = [i for i in ids if _has_end(opened, i)]
    numbers = {old: new for new, old in enumerate(ids)}
    reader = _Reader(str(opened.storage.data_path), features.arrow_schema, numbers, observe)
    return built(reader.tables, ids, features, num_proc=num_proc, cache_dir=cache_dir)


def minari_episodes(dataset: str | Path | minari.MinariDataset, observe: Observe | None = None) -> Iterator[Episode]:
    """The episodes of a Minari data set, with their final observations. Raises what [`read_minari`] raises."""
    opened = _opened(dataset)
    _features(opened, observe)
    sizes = _sizes(opened)
    ids = [int(i) for i in opened.episode_indices]
    details = opened.storage.get_episode_metadata(ids)
    for data, about in zip(opened.iterate_episodes(ids), details, strict=True):
        yield _episode(data, _observed(data.observations, observe), about, opened.action_space, sizes)


@dataclass(frozen=True)
class _Reader:
    """Opens the data set in the process that reads: an open HDF5 file cannot be sent to another one."""

    folder: str
    schema: pa.Schema
    numbers: dict[int, int]
    observe: Observe | None

    def tables(self, ids: list[int]) -> Iterator[pa.Table]:
        selected = import_minari().MinariDataset(self.folder, np.array(ids))
        for number, episode in zip(ids, minari_episodes(selected, self.observe), strict=True):
            yield table_of(episode, self.numbers[number], self.schema)


def _observed(observations: Any, observe: Observe | None) -> NDArray[Any]:
    """The observations of an episode, frames or vectors, one a row."""
    if observe is None:
        return np.asarray(observations)
    first = observations
    while isinstance(first, dict | tuple):  # of spaces within spaces, each with a column of steps
        first = next(iter(first.values() if isinstance(first, dict) else first))
    return np.stack([observe(_step(observations, step)) for step in range(len(first))])


def _step(observations: Any, step: int) -> Any:
    if isinstance(observations, dict):
        return {name: _step(column, step) for name, column in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_step(column, step) for column in observations)
    return observations[step]


def _episode(
    data: Any, observations: NDArray[Any], about: dict[str, Any], space: gymnasium.Space[Any], sizes: list[int]
) -> Episode:
    """The episode of Minari's data and metadata."""
    steps = len(data.rewards)
    ends = np.flatnonzero(data.terminations | data.truncations)
    if len(observations) not in (steps, steps + 1) or (ends[:-1].size or (ends < steps - 1).any()):
        raise ControlError(
            f"Episode {data.id} must have {steps} or {steps + 1} observations for its {steps} steps, and end with its "
            f"last step, {steps - 1}; it has {len(observations)} observations and ends with steps {ends.tolist()}. "
            "Leave it out, with Minari's filter_episodes."
        )
    if observations.ndim == 2:
        observations = observations.astype(np.float32)
    actions = np.asarray(data.actions, np.int64).reshape(steps, -1) - getattr(space, "start", 0)
    if actions.shape[1] != len(sizes) or (actions < 0).any() or (actions >= sizes).any():
        raise ControlError(
            f"Episode {data.id} has actions that are not of the data set's own space, {space}. Leave it out, with "
            "Minari's filter_episodes."
        )
    infos = data.infos or {}
    success = next((infos[name] for name in SUCCESS if name in infos), np.zeros(steps, bool))
    return Episode(
        observations=observations[:steps],
        actions=actions,
        rewards=np.asarray(data.rewards, np.float32),
        success=np.asarray(success, bool)[-steps:],  # infos may begin with that of `reset`
        terminated=bool(data.terminations[-1]),
        truncated=bool(data.truncations[-1]),
        seed=UNKNOWN_SEED if about.get("seed") is None else int(about["seed"]),
        final_observation=observations[steps] if len(observations) > steps else None,
    )


def _has_end(dataset: minari.MinariDataset, number: int) -> bool:
    (data,) = dataset.iterate_episodes([number])
    return bool((data.terminations | data.truncations).any())


def _features(dataset: minari.MinariDataset, observe: Observe | None) -> int | None:
    """The features of an observation, or None for frames."""
    seen = dataset.observation_space
    if observe is not None and dataset.total_episodes:
        (data,) = dataset.iterate_episodes(dataset.episode_indices[:1])
        one = _observed(data.observations, observe)[0]
        seen = Box(-np.inf, np.inf, one.shape, one.dtype)
    frames = isinstance(seen, Box) and len(seen.shape) == 3 and seen.shape[2] == 3 and seen.dtype == np.uint8
    if not frames and not (isinstance(seen, Box) and len(seen.shape) == 1):
        raise ControlError(
            f"The observations must be uint8 frames [height, width, 3] or vectors, are {seen}; give `observe`, a "
            "function that makes one of them of an observation."
        )
    return None if frames else int(seen.shape[0])


def _sizes(dataset: minari.MinariDataset) -> list[int]:
    """The sizes of the components of an action."""
    done = dataset.action_space
    if isinstance(done, Discrete):
        return [int(done.n)]
    if isinstance(done, MultiBinary) and len(done.shape) == 1:
        return [2] * done.shape[0]
    if isinstance(done, MultiDiscrete) and done.nvec.ndim == 1:
        return [int(n) for n in done.nvec]
    raise ControlError(f"The actions must be Discrete, or MultiDiscrete or MultiBinary in one row, are {done}.")


def _opened(dataset: str | Path | minari.MinariDataset) -> minari.MinariDataset:
    minari = import_minari()
    from minari.storage import get_dataset_path

    if isinstance(dataset, minari.MinariDataset):
        return dataset
    folders = (Path(dataset), Path(dataset) / "data", Path(get_dataset_path(str(dataset))) / "data")
    for folder in folders:
        if (folder / "metadata.json").is_file():
            return minari.MinariDataset(folder)
    raise ControlError(
        f"There is no Minari data set {str(dataset)!r}: none of {', '.join(map(str, folders))} has a metadata.json. "
        "minari.load_dataset(id, download=True) downloads one."
    )


# ----------------------------------------------------------------------------------------------------------------------
# Episodes to a Minari data set.


def write_minari(
    episodes: datasets.Dataset | datasets.IterableDataset | Iterable[Episode],
    dataset_id: str,
    environment: str,
    *,
    jpeg: bool = False,
    metadata: dict[str, Any] | None = None,
    **options: Any,
) -> minari.MinariDataset:
    """Writes episodes as a Minari data set, HDF5, in Minari's own folder (`MINARI_DATASETS_PATH`).

    Args:
        episodes: a data set of rows, or the episodes themselves. One at a time is in memory.
        dataset_id: such as "doom/my_way_home/expert-v0".
        environment: the id of the one that was played. Its actions are written in its own form, such as `Discrete`.
        jpeg: Minari's smaller and lossy frames; raw frames, of 27,648 bytes for 72 x 128, are exact.
        metadata: of Minari: `algorithm_name`, `author`, `author_email`, `code_permalink`, `description`.
        options: of the environment, for `make_environment`.

    Returns:
        The data set, as `minari.load_dataset(dataset_id)` gives it. A killed writing leaves none.

    Raises:
        ControlError: a wrong id, or one that is taken; no episodes, or episodes of another environment, or
            that `hf_mech.control.rows.episodes_of` refuses.
        MissingExtraError: Minari is not installed.
    """
    minari = import_minari()
    from minari.dataset.minari_storage import MinariStorage

    folder = _new_folder(dataset_id)
    if isinstance(episodes, datasets.Dataset | datasets.IterableDataset):
        episodes = episodes_of(episodes)
    with closing(make_environment(environment, **options)) as opened:
        # Beneath the wrapper that makes the actions MultiDiscrete.
        inner: Any = opened.env  # type: ignore[attr-defined]
        observations, actions, specification = opened.observation_space, inner.action_space, _specification(inner)
        sizes = opened.action_space.nvec  # type: ignore[attr-defined]
    about = {"dataset_id": dataset_id, "minari_version": minari.__version__, **(metadata or {})}
    for name in ("author", "author_email"):
        if isinstance(about.get(name), str):
            about[name] = {about[name]}
    with replacing(folder) as temporary:
        temporary.mkdir()
        storage = MinariStorage.new(
            temporary / "data", observations, actions, specification, "hdf5", jpeg_encoding=jpeg
        )
        storage.update_metadata(about)
        storage.update_episodes(
            _buffer(_checked(episode, observations, sizes, environment), actions) for episode in episodes
        )
        if not storage.total_episodes:
            raise ControlError("There are no episodes to write; give at least one.")
    return minari.MinariDataset(folder / "data")


def _checked(
    episode: Episode, observations: gymnasium.Space[Any], sizes: NDArray[np.int64], environment: str
) -> Episode:
    """The episode. Raises ControlError if it is not one of an environment of these observations and actions."""
    seen, done = episode.observations.shape[1:], episode.actions
    if seen != observations.shape or done.shape[1] != len(sizes) or (done < 0).any() or (done >= sizes).any():
        raise ControlError(
            f"The episode of seed {episode.seed} has observations of shape {list(seen)} and {done.shape[1]} components "
            f"of actions, from {done.min(0).tolist()} to {done.max(0).tolist()}; {environment} has observations of "
            f"shape {list(observations.shape or ())} and components of the sizes {sizes.tolist()}. Name the one that "
            "was played, with its options, such as frame_size."
        )
    return episode


def _buffer(episode: Episode, space: gymnasium.Space[Any]) -> Any:
    """The episode as Minari takes it."""
    from minari.data_collector import EpisodeBuffer

    last = episode.observations[-1] if episode.final_observation is None else episode.final_observation
    at_the_end = np.arange(len(episode)) == len(episode) - 1
    actions = episode.actions + getattr(space, "start", 0)
    arrays: dict[str, Any] = {
        "observations": np.concatenate([episode.observations, last[None]]),
        "actions": (actions[:, 0] if isinstance(space, Discrete) else actions).astype(space.dtype),
        "rewards": episode.rewards,
        "terminations": at_the_end & episode.terminated,
        "truncations": at_the_end & episode.truncated,
        "infos": {SUCCESS[0]: np.concatenate([[False], episode.success])},
    }
    return EpisodeBuffer(seed=None if episode.seed == UNKNOWN_SEED else int(episode.seed), **arrays)


def _specification(environment: gymnasium.Env[Any, Any]) -> Any:
    """What Minari makes the environment again with; None if a file cannot hold it, as when it was given as a class."""
    try:
        return environment.spec if environment.spec and environment.spec.to_json() else None
    except (TypeError, ValueError):
        return None


def _new_folder(dataset_id: str) -> Path:
    """Where the data set of that id belongs; its namespace is made."""
    from minari.dataset.minari_dataset import DATASET_ID_RE
    from minari.namespace import create_namespace, list_local_namespaces
    from minari.storage import get_dataset_path

    match = DATASET_ID_RE.fullmatch(dataset_id)
    if not match or match["version"] is None:
        raise ControlError(f"A Minari id must be [namespace/]name-v0, with any number behind -v, got {dataset_id!r}.")
    folder = Path(get_dataset_path(dataset_id)).absolute()  # a relative one confuses Minari
    if folder.exists():
        raise ControlError(
            f"There is a Minari data set {dataset_id!r} already, in {folder}. Take another version, or remove it: "
            f"minari.delete_dataset({dataset_id!r})."
        )
    if match["namespace"] and match["namespace"] not in list_local_namespaces():
        create_namespace(match["namespace"])
    return folder
