"""Context windows of frames that are decoded once: training reads each frame of a data set many times.

    data = load_dataset("hf_mech/vizdoom_trajectories", "my_way_home-expert", split="train", frame_size=(36, 64))
    windows = DecodedWindows(data, context_length=20)

A frame is in as many windows as a context is long, in every epoch. Its decoded bytes are four to seven times those of
its image file, so this is for data sets that fit on the disk when decoded. They are mapped into memory, not read into
it: several processes share one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError
from hf_mech.control.rows import actions_of, check_columns, observations_of, tables_of
from hf_mech.control.windows import ContextWindows, Window, check_actions, check_dataset
from hf_mech.hub.files import held, replacing

if TYPE_CHECKING:
    import datasets

_ARRAYS = ("states", "actions", "returns_to_go", "timesteps")
_NEEDED = ("episode", "timestep", "observation", "action", "return_to_go")


class DecodedWindows(ContextWindows):
    """[`ContextWindows`] of a data set that is decoded when they are made; the windows are the same ones.

    The decoded arrays lie beside the data set's own cache, under its fingerprint, and are made once.

    Args:
        dataset: with the columns of `hf_mech.control.rows`. Without files of its own it is decoded in memory.
        context_length: the most steps of a window.
        action_sizes: the number of choices of each component, to be checked.

    Raises:
        ControlError: as `ContextWindows`; and frames of different sizes.
        OutputError: a full disk.
    """

    def __init__(
        self, dataset: datasets.Dataset, context_length: int, action_sizes: Sequence[int] | None = None
    ) -> None:
        check_dataset(dataset)
        check_columns(dataset.column_names, _NEEDED)
        self._arrays = _decoded(dataset) if len(dataset) else {}
        super().__init__(dataset, context_length, action_sizes)

    def window_of_rows(self, rows: slice) -> Window:
        window = {name: torch.from_numpy(np.array(array[rows])) for name, array in self._arrays.items()}
        if self.action_sizes is not None:
            check_actions(window["actions"], self.action_sizes)
        return window


def _decoded(dataset: datasets.Dataset) -> dict[str, NDArray[Any]]:
    """The arrays of all rows, by their names in a window."""
    if not dataset.cache_files:
        parts = list(_parts(dataset))
        return {name: np.concatenate([part[name] for part in parts]) for name in _ARRAYS}
    folder = Path(dataset.cache_files[0]["filename"]).parent / f"decoded-{dataset._fingerprint}"
    with held(folder, wait=True):
        if not folder.is_dir():
            with replacing(folder) as aside:
                aside.mkdir()
                _write(dataset, aside)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}


def _write(dataset: datasets.Dataset, folder: Path) -> None:
    files: dict[str, NDArray[Any]] = {}
    done = 0
    for part in _parts(dataset):
        for name, array in part.items():
            if name not in files:
                shape = (len(dataset), *array.shape[1:])
                files[name] = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", array.dtype, shape)
            files[name][done : done + len(array)] = array
        done += len(part["actions"])


def _parts(dataset: datasets.Dataset) -> Any:
    """The arrays of some rows after the others, in the types of a window."""
    size: tuple[int, ...] | None = None
    for table in tables_of(dataset):
        observations = observations_of(table.column("observation"))
        frames = observations.ndim == 4
        size = size or observations.shape[1:]
        if observations.shape[1:] != size:
            raise ControlError(
                f"All observations must have one size, got {list(size)} and {list(observations.shape[1:])}."
            )
        yield {
            "states": observations.transpose(0, 3, 1, 2) if frames else observations,
            "actions": actions_of(table.column("action")),
            "returns_to_go": table.column("return_to_go").to_numpy().astype(np.float32, copy=False),
            "timesteps": table.column("timestep").to_numpy().astype(np.int64, copy=False),
        }
