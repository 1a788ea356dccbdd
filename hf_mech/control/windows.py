"""Context windows of episodes: what a decision transformer reads at once (Section 4 of M-SAT).

    data = load_dataset("hf_mech/vizdoom_trajectories", "my_way_home-expert", split="train")
    windows = ContextWindows(data, context_length=30)
    Trainer(model, arguments, WindowCollator(context_length=30), windows)

A window is `context_length` steps of an episode that follow each other, and begins at any step that leaves so many. A
shorter episode is one window, whole. Windows are dicts of tensors:

===============  ==========================================================  =====================================
states           [steps, 3, height, width] uint8, or [steps, features]       in the environment's own units
actions          [steps, components] int64
returns_to_go    [steps] float32                                             in the environment's own units
timesteps        [steps] int64                                               counted from the episode's beginning
===============  ==========================================================  =====================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from hf_mech.control.errors import ControlError
from hf_mech.control.rows import actions_of, check_columns, observations_of, piece_starts, pieces_of, tables_of
from hf_mech.hub.files import held, replacing

if TYPE_CHECKING:
    import datasets

Window = dict[str, Tensor]

_NEEDED = ("episode", "timestep", "observation", "action", "return_to_go")
_OF_A_WINDOW = ("states", "actions", "returns_to_go", "timesteps")
IGNORED = -100  # of labels: transformers' own


class ContextWindows(Dataset[Window]):
    """All windows of a data set of episodes, by their numbers. Only the windows that are asked for are read.

    Args:
        dataset: with the columns of `hf_mech.control.rows`; stays on disk.
        context_length: the most steps of a window.
        action_sizes: the number of choices of each component, to be checked.

    Raises:
        ControlError: no data set of `datasets`, or all of its splits, or a streamed one; the data set lacks a column;
            the rows of an episode are not neighbours; the context length is no whole number, 1 or more; actions with
            another number of components or, when a window is read, with other values; a data set without rows.
    """

    def __init__(
        self, dataset: datasets.Dataset, context_length: int, action_sizes: Sequence[int] | None = None
    ) -> None:
        check_dataset(dataset)
        check_columns(dataset.column_names, _NEEDED)
        if len(dataset) == 0:
            raise ControlError("The data set has no rows, so there are no windows.")
        self.context_length = checked_length(context_length)
        self.action_sizes = None if action_sizes is None else tuple(action_sizes)
        self._rows = dataset.select_columns(list(_NEEDED)).with_format("arrow")
        # Two numbers a row, only here; what stays is two numbers an episode.
        order = dataset.select_columns(["episode", "timestep"]).with_format("arrow")[:]
        self._starts = piece_starts(*(order.column(name).to_numpy() for name in ("episode", "timestep")))
        lengths = np.diff([*self._starts, len(dataset)])
        self._ends = np.cumsum(np.maximum(lengths - self.context_length, 0) + 1)
        self._lengths = np.minimum(lengths, self.context_length)
        self.window_of_rows(slice(0, int(self._lengths[0])))  # refuses wrong actions and frames before work starts

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Window:
        if not -len(self) <= index < len(self):
            raise IndexError(f"There are {len(self)} windows, got the number {index}.")
        index %= len(self)
        piece = int(np.searchsorted(self._ends, index, "right"))
        first = index - (int(self._ends[piece - 1]) if piece else 0)
        start = int(self._starts[piece]) + first
        return self.window_of_rows(slice(start, start + int(self._lengths[piece])))

    def window_of_rows(self, rows: slice) -> Window:
        """The window of neighbouring rows of one episode; subclasses read it from elsewhere."""
        return window_of(self._rows[rows], self.action_sizes)


class ContextWindowStream(IterableDataset[Window]):
    """The windows of a data set that is streamed, in a random order. Each one comes once in an epoch.

    Workers of a DataLoader take different shards of the data set. A new epoch has a new order: Trainer calls
    `set_epoch`.

    Args:
        dataset: as `load_dataset(..., streaming=True)` gives it; with the columns of `hf_mech.control.rows`.
        context_length: the most steps of a window.
        action_sizes: the number of choices of each component, to be checked.
        buffer_size: the windows to draw the next one from. Their frames wait encoded. 0 keeps the order of the data.
        seed: of the order.

    Raises (the last three while iterating):
        ControlError: as [`ContextWindows`].
    """

    def __init__(
        self,
        dataset: datasets.IterableDataset,
        context_length: int,
        action_sizes: Sequence[int] | None = None,
        buffer_size: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.context_length = checked_length(context_length)
        self.action_sizes = None if action_sizes is None else tuple(action_sizes)
        check_dataset(dataset, stream=True)
        self.buffer_size, self.seed, self.epoch = buffer_size, seed, 0
        self._dataset = dataset

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of an epoch, in the next iteration."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Window]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        dataset = self._dataset
        if workers > 1:
            # A worker more than there are shards has nothing to do.
            workers = min(workers, dataset.num_shards)
            if number >= workers:
                return
            dataset = dataset.shard(num_shards=workers, index=number)
        generator = np.random.default_rng([self.seed, self.epoch, number])
        waiting: list[tuple[pa.Table, int]] = []
        for piece in pieces_of(tables_of(dataset)):
            rows = piece.select(_NEEDED)
            waiting += [(rows, first) for first in range(max(len(rows) - self.context_length, 0) + 1)]
            while len(waiting) > self.buffer_size:
                yield self._drawn(waiting, generator)
        while waiting:
            yield self._drawn(waiting, generator)

    def _drawn(self, waiting: list[tuple[pa.Table, int]], generator: np.random.Generator) -> Window:
        if self.buffer_size:
            drawn = int(generator.integers(len(waiting)))
            waiting[drawn], waiting[-1] = waiting[-1], waiting[drawn]
            rows, first = waiting.pop()
        else:
            rows, first = waiting.pop(0)
        return window_of(rows.slice(first, self.context_length), self.action_sizes)


@dataclass
class WindowCollator:
    """A batch of windows, padded on the right, for a decision transformer; Trainer's `data_collator`.

    The batch has the tensors of a window, [batch, steps, ...], and `attention_mask` [batch, steps], 1 for steps that
    are there and 0 for padding, and `labels` [batch, steps, components], the actions and -100 for padding.

    Args:
        context_length: pads to this length, and refuses longer windows; None pads to the longest window.
        action_sizes: the number of choices of each component, to be checked.

    Raises:
        ControlError: a window is longer than the context; or the context length is no whole number, 1 or more; actions
            of another size; no windows, rows of a data set instead of windows, or windows of different environments.

    Example:

    ```python
    >>> long, short = (
    ...     {
    ...         "states": torch.zeros(steps, 2),
    ...         "actions": torch.ones(steps, 1, dtype=torch.int64),
    ...         "returns_to_go": torch.zeros(steps),
    ...         "timesteps": torch.arange(steps),
    ...     }
    ...     for steps in (3, 1)
    ... )
    >>> batch = WindowCollator()([long, short])
    >>> batch["attention_mask"].tolist()
    [[1, 1, 1], [1, 0, 0]]
    >>> batch["labels"].squeeze(-1).tolist()
    [[1, 1, 1], [1, -100, -100]]

    ```
    """

    context_length: int | None = None
    action_sizes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.context_length is not None:
            checked_length(self.context_length)

    def __call__(self, windows: Sequence[Window]) -> dict[str, Tensor]:
        if missing := [name for name in _OF_A_WINDOW for window in windows[:1] if name not in window]:
            raise ControlError(
                f"A window must have {', '.join(_OF_A_WINDOW)}; got one without {', '.join(missing)}. Give Trainer or "
                "DataLoader the windows of a data set, not its rows: ContextWindows(dataset, context_length=...)."
            )
        _check_alike(windows)
        lengths = torch.tensor([len(window["actions"]) for window in windows])
        length = self._length(int(lengths.max()))
        if self.action_sizes is not None:
            for window in windows:
                check_actions(window["actions"], self.action_sizes)
        batch = {name: _padded([window[name] for window in windows], length) for name in windows[0]}
        batch["attention_mask"] = (torch.arange(length) < lengths[:, None]).long()
        batch["labels"] = batch["actions"].masked_fill(batch["attention_mask"][..., None] == 0, IGNORED)
        return batch

    def _length(self, longest: int) -> int:
        if self.context_length is None:
            return longest
        if longest > self.context_length:
            raise ControlError(
                f"A window of {longest} steps is longer than the context of {self.context_length}; cut windows with "
                f"ContextWindows(dataset, context_length={self.context_length})."
            )
        return self.context_length


def window_of(rows: pa.Table, action_sizes: Sequence[int] | None = None) -> Window:
    """The window of neighbouring rows of one episode. Raises ControlError for actions of other sizes."""
    observations = observations_of(rows.column("observation"))
    if observations.ndim == 4:
        observations = np.ascontiguousarray(observations.transpose(0, 3, 1, 2))
    actions = torch.from_numpy(actions_of(rows.column("action")))
    if action_sizes is not None:
        check_actions(actions, action_sizes)
    return {
        "states": torch.from_numpy(observations),
        "actions": actions,
        "returns_to_go": torch.from_numpy(_copied(rows, "return_to_go", np.float32)),
        "timesteps": torch.from_numpy(_copied(rows, "timestep", np.int64)),
    }


def check_actions(actions: Tensor, sizes: Sequence[int]) -> None:
    """Raises ControlError if actions, [steps, components], are not of an action space of these sizes."""
    if actions.shape[-1] != len(sizes):
        raise ControlError(
            f"Actions must have {len(sizes)} components, of sizes {list(sizes)}, have {actions.shape[-1]}: the data "
            "set is of another environment."
        )
    wrong = (actions < 0) | (actions >= torch.tensor(list(sizes)))
    if wrong.any():
        step, component = wrong.nonzero()[0].tolist()
        raise ControlError(
            f"Component {component} of an action must be from 0 to {sizes[component] - 1}, is "
            f"{int(actions[step, component])}: the data set is of another environment, or action_sizes are wrong."
        )


def check_dataset(dataset: Any, stream: bool = False) -> None:
    """Raises ControlError unless it is one split of a data set of `datasets`, in memory, on disk, or streamed."""
    import datasets

    taken = (datasets.Dataset, datasets.IterableDataset) if stream else datasets.Dataset
    if isinstance(dataset, taken):
        return
    if isinstance(dataset, dict):
        hint = f"take one of its splits, {', '.join(map(repr, dataset))}"
    elif isinstance(dataset, datasets.IterableDataset):
        hint = "a streamed data set has no numbers: take ContextWindowStream"
    else:
        hint = "make one with hf_mech.control.recording.record, load_dataset, or Dataset.from_list"
    raise ControlError(f"Windows are cut from a Dataset of `datasets`, got a {type(dataset).__name__}; {hint}.")


def checked_length(context_length: Any) -> int:
    """The context length. Raises ControlError if it is no whole number, 1 or more."""
    if isinstance(context_length, bool) or not isinstance(context_length, int | np.integer) or context_length < 1:
        raise ControlError(f"context_length must be a whole number of steps, 1 or more, got {context_length!r}.")
    return int(context_length)


def _copied(rows: pa.Table, name: str, kind: type[np.generic]) -> Any:
    return np.array(rows.column(name).to_numpy(), kind)  # torch cannot share memory that is read-only


def _check_alike(windows: Sequence[Window]) -> None:
    """Raises ControlError for windows that make no batch: torch would broadcast or cut some of them in silence."""
    if not windows:
        raise ControlError("A batch needs at least one window, got none.")
    for name, first in windows[0].items():
        for number, window in enumerate(windows):
            own = window[name]
            if (own.shape[1:], own.dtype, len(own)) != (first.shape[1:], first.dtype, len(window["actions"])):
                raise ControlError(
                    f"All windows of a batch must be of one environment: {name} are {first.dtype} of shape "
                    f"{list(first.shape[1:])} a step in the first one, and {own.dtype} of shape {list(own.shape[1:])}, "
                    f"{len(own)} for {len(window['actions'])} steps, in window {number}."
                )


def _padded(tensors: Sequence[Tensor], length: int) -> Tensor:
    first = tensors[0]
    batch = first.new_zeros(len(tensors), length, *first.shape[1:])
    for row, tensor in zip(batch, tensors, strict=True):
        row[: len(tensor)] = tensor
    return batch


# ----------------------------------------------------------------------------------------------------------------------
# Windows of frames that are decoded once, because training reads each frame of a data set many times.
#
#     data = load_dataset("hf_mech/vizdoom_trajectories", "my_way_home-expert", split="train", frame_size=(36, 64))
#     windows = DecodedWindows(data, context_length=20)
#
# A frame is in as many windows as a context is long, in every epoch. Its decoded bytes are four to seven times those of
# its image file, so this is for data sets that fit on the disk when decoded. They are mapped into memory, not read into
# it: several processes share one copy.


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
        return {name: np.concatenate([part[name] for part in parts]) for name in _OF_A_WINDOW}
    folder = Path(dataset.cache_files[0]["filename"]).parent / f"decoded-{dataset._fingerprint}"
    with held(folder, wait=True):
        if not folder.is_dir():
            with replacing(folder) as aside:
                aside.mkdir()
                _write(dataset, aside)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _OF_A_WINDOW}


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
    for table in tables_of(dataset, _NEEDED):
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
