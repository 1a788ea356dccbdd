"""Episodes to a Minari data set."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets
import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from hf_mech.control.data_errors import MinariError
from hf_mech.control.environments import make_environment
from hf_mech.control.episodes import Episode
from hf_mech.control.minari_format.library import SUCCESS, UNKNOWN_SEED, import_minari
from hf_mech.control.rows import episodes_of
from hf_mech.hub.disk.files import replacing

if TYPE_CHECKING:
    import minari


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
        MinariError: a wrong id, or one that is taken; no episodes, or episodes of another environment.
        MissingColumnsError, RowOrderError, EpisodeWithoutEndError: see `hf_mech.control.rows.episodes_of`.
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
            raise MinariError("There are no episodes to write; give at least one.")
    return minari.MinariDataset(folder / "data")


def _checked(
    episode: Episode, observations: gymnasium.Space[Any], sizes: NDArray[np.int64], environment: str
) -> Episode:
    """The episode. Raises MinariError if it is not one of an environment of these observations and actions."""
    seen, done = episode.observations.shape[1:], episode.actions
    if seen != observations.shape or done.shape[1] != len(sizes) or (done < 0).any() or (done >= sizes).any():
        raise MinariError(
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
        raise MinariError(f"A Minari id must be [namespace/]name-v0, with any number behind -v, got {dataset_id!r}.")
    folder = Path(get_dataset_path(dataset_id)).absolute()  # a relative one confuses Minari
    if folder.exists():
        raise MinariError(
            f"There is a Minari data set {dataset_id!r} already, in {folder}. Take another version, or remove it: "
            f"minari.delete_dataset({dataset_id!r})."
        )
    if match["namespace"] and match["namespace"] not in list_local_namespaces():
        create_namespace(match["namespace"])
    return folder
