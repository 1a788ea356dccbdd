"""Episodes as rows of a table, one a step, and back.

==============  ==========================  =============================================================
column          type                        meaning
==============  ==========================  =============================================================
episode         int32                       the number of the episode in its split
timestep        int32                       the number of the step in its episode, from 0
observation     Image or list of float32    before the action; a frame, encoded without loss, or a vector
action          list of int8 or wider       one number a component
reward          float32                     for the action
return_to_go    float32                     the sum of this reward and all later ones of the whole episode
terminated      bool                        whether the task ended the episode with this step
truncated       bool                        whether a limit of time did
success         bool                        whether the task was solved by the end of the step
seed            int64                       of the episode
==============  ==========================  =============================================================

The rows of an episode are neighbours, in the order of its steps.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hf_mech.control.episodes import Episode
from hf_mech.control.errors import ControlError

if TYPE_CHECKING:
    import datasets

COLUMNS = (
    "episode",
    "timestep",
    "observation",
    "action",
    "reward",
    "return_to_go",
    "terminated",
    "truncated",
    "success",
    "seed",
)
ROWS_AT_A_TIME = 1_000  # of each table that `tables_of` reads


def features_of(features: int | None, action_sizes: Sequence[int]) -> datasets.Features:
    """The columns and their types.

    Args:
        features: the length of an observation that is a vector, or None for frames.
        action_sizes: the number of choices of each component.
    """
    import datasets  # heavy, and not needed by a process that only encodes

    kind = next(kind for kind in ("int8", "int16", "int32") if max(action_sizes) - 1 <= np.iinfo(kind).max)
    vector = None if features is None else datasets.List(datasets.Value("float32"), length=features)
    types: dict[str, Any] = {
        "episode": datasets.Value("int32"),
        "timestep": datasets.Value("int32"),
        "observation": vector or datasets.Image(),
        "action": datasets.List(datasets.Value(kind), length=len(action_sizes)),
        "reward": datasets.Value("float32"),
        "return_to_go": datasets.Value("float32"),
        **dict.fromkeys(("terminated", "truncated", "success"), datasets.Value("bool")),
        "seed": datasets.Value("int64"),
    }
    return datasets.Features(types)


def check_columns(names: Iterable[str], needed: Iterable[str] = COLUMNS) -> None:
    """Raises ControlError if a data set lacks one of the columns needed."""
    if missing := [name for name in needed if name not in set(names)]:
        raise ControlError(
            f"The data set has no column {', '.join(map(repr, missing))}; its columns are {', '.join(names)}. "
            "hf_mech.control.rows has the list of those of trajectories; rename_column changes a name."
        )


# ----------------------------------------------------------------------------------------------------------------------
# An episode as rows.


def table_of(episode: Episode, number: int, schema: pa.Schema) -> pa.Table:
    """The rows of an episode.

    Args:
        episode: whole.
        number: of the episode in its split.
        schema: `features_of(...).arrow_schema`.
    """
    steps = len(episode)
    at_the_end = np.arange(steps) == steps - 1
    columns: dict[str, Any] = {
        "episode": np.full(steps, number, np.int32),
        "timestep": np.arange(steps, dtype=np.int32),
        "observation": _observation_array(episode.observations),
        "action": _lists(episode.actions, schema.field("action").type),
        "reward": episode.rewards,
        "return_to_go": episode.returns_to_go,
        "terminated": at_the_end & episode.terminated,
        "truncated": at_the_end & episode.truncated,
        "success": episode.success,
        "seed": np.full(steps, episode.seed, np.int64),
    }
    return pa.table([pa.array(columns[name]) for name in schema.names], schema=schema)


def _observation_array(observations: NDArray[Any]) -> pa.Array:
    if observations.ndim == 2:
        vectors = np.ascontiguousarray(observations, np.float32)
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    images = pa.array([encode_frame(frame) for frame in observations], pa.binary())
    return pa.StructArray.from_arrays([images, pa.nulls(len(images), pa.string())], ["bytes", "path"])


def _lists(rows: NDArray[Any], kind: pa.FixedSizeListType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)).cast(kind.value_type), rows.shape[1])


# ----------------------------------------------------------------------------------------------------------------------
# Rows as episodes, or as pieces of episodes where a data set was cut.


def episodes_of(dataset: datasets.Dataset | datasets.IterableDataset) -> Iterator[Episode]:
    """The episodes of a data set, one after the other.

    Raises:
        ControlError: rows that cannot be read, that lack a column, or that stand in another order; an episode
            without its first or its last row.
    """
    for piece in pieces_of(tables_of(dataset)):
        first = piece.column("timestep")[0].as_py()
        if first != 0:
            raise ControlError(
                f"Episode {piece.column('episode')[0]} begins at step {first}; begin the data set at a first step."
            )
        yield episode_of(piece)


def tables_of(
    dataset: datasets.Dataset | datasets.IterableDataset, needed: Iterable[str] = COLUMNS
) -> Iterator[pa.Table]:
    """All rows of a data set with these columns, some at a time, images as they are stored."""
    for table in dataset.with_format("arrow").iter(batch_size=ROWS_AT_A_TIME):
        check_columns(table.column_names, needed)
        yield table


def pieces_of(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of each episode as one table; only the first and the last table may be a part of one.

    Raises:
        ControlError: the rows of an episode are not neighbours in the order of its steps.
    """
    waiting: list[pa.Table] = []
    for table in tables:
        rows = pa.concat_tables([*waiting, table]) if waiting else table
        starts = piece_starts(*(rows.column(name).to_numpy() for name in ("episode", "timestep")))
        ends = [*starts[1:].tolist(), len(rows)]
        *whole, last = (rows.slice(start, end - start) for start, end in zip(starts.tolist(), ends, strict=True))
        yield from whole
        waiting = [last]
    yield from waiting


def piece_starts(episodes: NDArray[np.int32], timesteps: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows at which another episode begins, the first row among them.

    The first rows may begin in the middle of an episode, as in a file of a data set that was cut between its rows.

    Args:
        episodes: [rows], the column `episode`.
        timesteps: [rows], the column `timestep`.

    Raises:
        ControlError: the rows of an episode are not neighbours in the order of its steps.
    """
    follows = (np.diff(episodes) == 0) & (np.diff(timesteps) == 1)
    starts = np.flatnonzero(np.concatenate(([True], ~follows)))
    if (late := starts[1:][timesteps[starts[1:]] != 0]).size:
        row = int(late[0])
        raise ControlError(
            f"Row {row} is step {timesteps[row]} of episode {episodes[row]}, behind step {timesteps[row - 1]} of "
            f"episode {episodes[row - 1]}: the rows of an episode must be neighbours, in the order of its steps. Do "
            "not shuffle or filter rows; sort(['episode', 'timestep']) mends a shuffled data set."
        )
    return starts


def episode_of(rows: pa.Table) -> Episode:
    """The episode that these rows are.

    Raises:
        ControlError: the last row neither terminated nor was truncated, or an earlier row did, so these are the
            rows of two episodes.
    """
    ends = np.logical_or(*(rows.column(name).to_numpy().astype(bool) for name in ("terminated", "truncated")))
    if ends[:-1].any():
        raise ControlError(
            f"Episode {rows.column('episode')[0]} ends with step {int(ends.argmax())} and goes on; give what follows "
            "another number, timesteps from 0, and returns-to-go of its own."
        )
    return Episode(
        observations=observations_of(rows.column("observation")),
        actions=actions_of(rows.column("action")),
        rewards=rows.column("reward").to_numpy().astype(np.float32, copy=False),
        success=rows.column("success").to_numpy(),
        terminated=rows.column("terminated")[-1].as_py(),
        truncated=rows.column("truncated")[-1].as_py(),
        seed=rows.column("seed")[0].as_py(),
    )


def observations_of(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """Observations as [rows, height, width, 3] uint8 or [rows, features] float32.

    Raises:
        ControlError: frames or vectors of different sizes, missing ones, or images that are not in the table.
    """
    if not pa.types.is_struct(column.type):
        return _matrix(column, "An observation").astype(np.float32, copy=False)
    frames = [decode_frame(_embedded(image)) for image in column.to_pylist()]
    if different := {frame.shape for frame in frames} - {frames[0].shape}:
        raise ControlError(
            f"All frames of an episode must have one size, got {list(frames[0].shape)} and {list(different.pop())}."
        )
    return np.stack(frames)


def actions_of(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Actions as [rows, components].

    Raises:
        ControlError: different numbers of components, missing ones, or values that are no whole numbers.
    """
    actions = _matrix(column, "An action")
    if actions.dtype.kind not in "iu":
        raise ControlError(f"The components of an action must be whole numbers, are {actions.dtype}.")
    return actions.astype(np.int64)


def _embedded(image: dict[str, Any] | None) -> bytes:
    if image is None or image["bytes"] is None:
        raise ControlError(
            f"An observation must hold its image file, got {image}. Save the data set with push_to_hub or to_parquet, "
            "which embed the files, and load it again."
        )
    encoded: bytes = image["bytes"]
    return encoded


def _matrix(column: pa.ChunkedArray | pa.Array, what: str) -> NDArray[Any]:
    """A column of lists of one length as [rows, length]. Raises ControlError for any other column."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise ControlError(
            f"{what} must be a list of numbers, is {kind}. A CSV file holds no lists: save the data with to_parquet "
            "or save_to_disk."
        )
    if not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
        raise ControlError(f"{what} must be a list of numbers, is a list of {kind.value_type}.")
    values = [chunk.flatten() for chunk in chunks]
    if any(part.null_count for part in [*chunks, *values]):
        raise ControlError(f"{what} must be a list of numbers, is missing in some rows, or a number of it is.")
    if pa.types.is_fixed_size_list(kind):
        lengths = {kind.list_size}
    else:
        lengths = {length for chunk in chunks for length in pc.list_value_length(chunk).unique().to_pylist()}
    if len(lengths) != 1 or 0 in lengths:
        raise ControlError(
            f"{what} must have the same number of numbers in all rows, at least one, has {sorted(lengths)}."
        )
    return np.concatenate([part.to_numpy(zero_copy_only=False) for part in values]).reshape(-1, *lengths)


# ----------------------------------------------------------------------------------------------------------------------
# A frame as bytes, and back.


def encode_frame(frame: NDArray[np.uint8]) -> bytes:
    """A frame, [height, width, 3] uint8, as lossless WebP.

    Method 0 at quality 0 is WebP's fastest: half the bytes of PNG's fastest, in about the same time.

    Raises:
        ControlError: no uint8 array of that shape.
    """
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise ControlError(f"A frame must be uint8 [height, width, 3], got {frame.dtype} of shape {list(frame.shape)}.")
    encoded = io.BytesIO()
    Image.fromarray(frame).save(encoded, "WEBP", lossless=True, method=0, quality=0)
    return encoded.getvalue()


def decode_frame(encoded: bytes) -> NDArray[np.uint8]:
    """The frame of any image file that PIL reads, [height, width, 3] uint8.

    Raises:
        ControlError: no image.
    """
    try:
        # Without a format, Pillow tries one after the other, which takes as long as to decode a frame.
        with Image.open(io.BytesIO(encoded), formats=("WEBP",) if encoded[:4] == b"RIFF" else None) as image:
            return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise ControlError(f"A frame of {len(encoded)} bytes cannot be read as an image: {error}.") from error
