"""A Minari data set as episodes and as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import datasets
import gymnasium
import numpy as np
import pyarrow as pa
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from hf_mech.control.data_errors import EpisodeWithoutEndError, MinariError
from hf_mech.control.episodes import Episode
from hf_mech.control.minari_format.library import SUCCESS, UNKNOWN_SEED, import_minari
from hf_mech.control.recording import built
from hf_mech.control.rows import features_of, table_of

if TYPE_CHECKING:
    import minari

Unfinished = Literal["refuse", "drop"]


def read_minari(
    dataset: str | Path | minari.MinariDataset,
    *,
    unfinished: Unfinished = "refuse",
    num_proc: int | None = None,
    cache_dir: str | None = None,
) -> datasets.Dataset:
    """A Minari data set as rows (see `hf_mech.control.rows`), on disk.

    Args:
        dataset: a data set, its id, or its folder. `minari.load_dataset(id, download=True)` downloads one.
        unfinished: "refuse" episodes without an end, or "drop" them: their returns-to-go are unknown.
        num_proc, cache_dir: as in `load_dataset`.

    Returns:
        The rows. Vectors and rewards of float64 become float32. `success` is the info `is_success` or `success`, and
        False where there is none; `seed` is -1 where it is unknown.

    Raises:
        MinariError: no such data set; other spaces than frames, vectors and discrete actions; or an episode that does
            not fit them.
        EpisodeWithoutEndError: see `unfinished`.
        MissingExtraError: Minari is not installed.
    """
    opened = _opened(dataset)
    size, sizes = _sizes(opened)
    features = features_of(size, sizes)
    ids = [int(i) for i in opened.episode_indices]
    if unfinished == "drop":
        ids = [i for i in ids if _has_end(opened, i)]
    numbers = {old: new for new, old in enumerate(ids)}
    reader = _Reader(str(opened.storage.data_path), features.arrow_schema, numbers)
    return built(reader.tables, ids, features, num_proc=num_proc, cache_dir=cache_dir)


def minari_episodes(dataset: str | Path | minari.MinariDataset) -> Iterator[Episode]:
    """The episodes of a Minari data set, with their final observations. Raises what [`read_minari`] raises."""
    opened = _opened(dataset)
    _, sizes = _sizes(opened)
    ids = [int(i) for i in opened.episode_indices]
    details = opened.storage.get_episode_metadata(ids)
    for data, about in zip(opened.iterate_episodes(ids), details, strict=True):
        yield _episode(data, about, opened.action_space, sizes)


@dataclass(frozen=True)
class _Reader:
    """Opens the data set in the process that reads: an open HDF5 file cannot be sent to another one."""

    folder: str
    schema: pa.Schema
    numbers: dict[int, int]

    def tables(self, ids: list[int]) -> Iterator[pa.Table]:
        selected = import_minari().MinariDataset(self.folder, np.array(ids))
        for number, episode in zip(ids, minari_episodes(selected), strict=True):
            yield table_of(episode, self.numbers[number], self.schema)


def _episode(data: Any, about: dict[str, Any], space: gymnasium.Space[Any], sizes: list[int]) -> Episode:
    """The episode of Minari's data and metadata."""
    steps = len(data.rewards)
    observations = np.asarray(data.observations)
    ends = np.flatnonzero(data.terminations | data.truncations)
    if len(observations) not in (steps, steps + 1) or (ends[:-1].size or (ends < steps - 1).any()):
        raise MinariError(
            f"Episode {data.id} must have {steps} or {steps + 1} observations for its {steps} steps, and end with its "
            f"last step, {steps - 1}; it has {len(observations)} observations and ends with steps {ends.tolist()}. "
            "Leave it out, with Minari's filter_episodes."
        )
    if observations.ndim == 2:
        observations = observations.astype(np.float32)
    actions = np.asarray(data.actions, np.int64).reshape(steps, -1) - getattr(space, "start", 0)
    if actions.shape[1] != len(sizes) or (actions < 0).any() or (actions >= sizes).any():
        raise MinariError(
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
    try:
        next(minari_episodes(import_minari().MinariDataset(dataset.storage, np.array([number]))))
    except EpisodeWithoutEndError:
        return False
    return True


def _sizes(dataset: minari.MinariDataset) -> tuple[int | None, list[int]]:
    """The features of an observation, or None for frames, and the sizes of the components of an action."""
    seen, done = dataset.observation_space, dataset.action_space
    frames = isinstance(seen, Box) and len(seen.shape) == 3 and seen.shape[2] == 3 and seen.dtype == np.uint8
    if not frames and not (isinstance(seen, Box) and len(seen.shape) == 1):
        raise MinariError(
            f"The observations must be uint8 frames [height, width, 3] or vectors, are {seen}; flatten them first, "
            "with gymnasium.spaces.utils.flatten, and write a data set of your own."
        )
    size = None if frames else int(seen.shape[0])
    if isinstance(done, Discrete):
        return size, [int(done.n)]
    if isinstance(done, MultiBinary) and len(done.shape) == 1:
        return size, [2] * done.shape[0]
    if isinstance(done, MultiDiscrete) and done.nvec.ndim == 1:
        return size, [int(n) for n in done.nvec]
    raise MinariError(f"The actions must be Discrete, or MultiDiscrete or MultiBinary in one row, are {done}.")


def _opened(dataset: str | Path | minari.MinariDataset) -> minari.MinariDataset:
    minari = import_minari()
    from minari.storage import get_dataset_path

    if isinstance(dataset, minari.MinariDataset):
        return dataset
    folders = (Path(dataset), Path(dataset) / "data", Path(get_dataset_path(str(dataset))) / "data")
    for folder in folders:
        if (folder / "metadata.json").is_file():
            return minari.MinariDataset(folder)
    raise MinariError(
        f"There is no Minari data set {str(dataset)!r}: none of {', '.join(map(str, folders))} has a metadata.json. "
        "minari.load_dataset(id, download=True) downloads one."
    )
