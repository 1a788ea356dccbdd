"""Episodes, the rows they become, and back: lossless, whole, in order; and everything else refused."""

import io
from dataclasses import replace

import numpy as np
import pytest
from datasets import Dataset, concatenate_datasets
from PIL import Image

from hf_mech.control.episodes import Episode
from hf_mech.control.errors import (
    ControlError,
)
from hf_mech.control.rows import (
    COLUMNS,
    decode_frame,
    encode_frame,
    episodes_of,
    features_of,
    observations_of,
    piece_starts,
    table_of,
)


def episode(steps: int = 7, frames: bool = True, seed: int = 3) -> Episode:
    generator = np.random.default_rng(seed)
    shape = (steps, 9, 16, 3) if frames else (steps, 5)
    observations = generator.integers(0, 256, shape).astype(np.uint8 if frames else np.float32)
    return Episode(
        observations=observations,
        actions=generator.integers(0, 3, (steps, 2)),
        rewards=generator.normal(size=steps).astype(np.float32),
        success=np.arange(steps) == steps - 1,
        terminated=True,
        truncated=False,
        seed=seed,
    )


def rows_of(*episodes: Episode, features: int | None = None) -> Dataset:
    types = features_of(features, (3, 3))
    tables = [table_of(one, number, types.arrow_schema) for number, one in enumerate(episodes)]
    return concatenate_datasets([Dataset(table, info=None).cast(types) for table in tables])


def same(one: Episode, other: Episode) -> bool:
    arrays = ("observations", "actions", "rewards", "success", "returns_to_go")
    values = ("terminated", "truncated", "seed")
    return all((getattr(one, a) == getattr(other, a)).all() for a in arrays) and all(
        getattr(one, v) == getattr(other, v) for v in values
    )


@pytest.mark.parametrize("name", ["observations", "rewards"])
def test_numbers_that_are_not_finite_are_refused(name):
    one = episode(frames=False)
    array = getattr(one, name).copy()
    array[4] = np.nan
    with pytest.raises(ControlError, match=f"The {name} .* that of step 4 of the episode of seed 3"):
        replace(one, **{name: array})


def test_text_of_a_csv_file_is_refused(tmp_path):
    rows_of(episode(frames=False), features=5).to_csv(tmp_path / "rows.csv")
    with pytest.raises(ControlError, match="A CSV file holds no lists"):
        next(episodes_of(Dataset.from_csv(str(tmp_path / "rows.csv"), cache_dir=tmp_path)))


def test_the_return_to_go_is_the_sum_of_what_is_to_come():
    one = episode(50)
    expected = [one.rewards[t:].astype(np.float64).sum() for t in range(50)]
    assert one.returns_to_go.dtype == np.float32
    assert np.allclose(one.returns_to_go, expected, rtol=1e-6)
    assert one.returns_to_go[-1] == one.rewards[-1]


@pytest.mark.parametrize("frames", [True, False])
def test_rows_lose_nothing(frames):
    episodes = [episode(7, frames), episode(1, frames, 4), episode(30, frames, 5)]
    rows = rows_of(*episodes, features=None if frames else 5)
    assert tuple(rows.column_names) == COLUMNS
    assert rows["timestep"][:] == [*range(7), 0, *range(30)]
    assert rows["episode"][:] == [0] * 7 + [1] + [2] * 30
    assert rows["terminated"][:] == [False] * 6 + [True, True] + [False] * 29 + [True]
    assert all(same(*pair) for pair in zip(episodes, episodes_of(rows), strict=True))
    streamed = rows.to_iterable_dataset(num_shards=2)
    assert all(same(*pair) for pair in zip(episodes, episodes_of(streamed), strict=True))


def test_a_long_episode_crosses_the_tables_that_are_read():
    long = episode(2_500, frames=False)
    (read,) = episodes_of(rows_of(long, features=5))
    assert same(long, read)


def test_anyone_can_look_at_a_frame():
    one = episode()
    rows = rows_of(one)
    assert isinstance(rows[2]["observation"], Image.Image)
    assert (np.asarray(rows[2]["observation"]) == one.observations[2]).all()


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_actions_of_many_choices_have_a_wider_type(size):
    features = features_of(4, (size,))
    one = replace(episode(frames=False), actions=np.full((7, 1), size - 1), observations=np.zeros((7, 4), np.float32))
    assert table_of(one, 0, features.arrow_schema)["action"].to_pylist() == [[size - 1]] * 7
    assert features["action"].feature.dtype == ("int16" if size == 1_000 else "int32")


def test_frames_of_other_programs_are_read():
    frame = episode().observations[0]
    for form in ("PNG", "BMP"):
        encoded = io.BytesIO()
        Image.fromarray(frame).save(encoded, form)
        assert (decode_frame(encoded.getvalue()) == frame).all()
    assert (decode_frame(encode_frame(frame)) == frame).all()


def test_an_episode_without_an_end_is_refused():
    with pytest.raises(ControlError, match="seed 3 has no end: its last step, 6"):
        replace(episode(), terminated=False)
    with pytest.raises(ControlError, match="has no end"):
        list(episodes_of(rows_of(episode(), episode()).select(range(13))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.zeros(0, np.float32)}, "at least one step"),
        ({"rewards": np.zeros(6, np.float32)}, "observations of an episode of 6 steps must have 6 rows"),
        ({"actions": np.zeros(7, np.int64)}, r"actions of .* 2 dimensions, got shape \[7\]"),
        ({"observations": np.zeros((7, 4, 4))}, r"2 or 4 dimensions, got shape \[7, 4, 4\]"),
        ({"success": np.zeros((7, 1), bool)}, r"success .* got shape \[7, 1\]"),
    ],
)
def test_arrays_that_are_no_episode_are_refused(changes, message):
    with pytest.raises(ControlError, match=message):
        replace(episode(), **changes)


@pytest.mark.filterwarnings("ignore:Specifying null_placement:FutureWarning")  # by datasets.sort
def test_rows_in_another_order_are_refused():
    rows = rows_of(episode(), episode())
    with pytest.raises(ControlError, match=r"must be neighbours.*sort\(\['episode', 'timestep'\]\)"):
        list(episodes_of(rows.shuffle(seed=0)))
    with pytest.raises(ControlError, match="begins at step 2"):
        list(episodes_of(rows.select(range(2, 14))))
    assert len(list(episodes_of(rows.shuffle(seed=0).sort(["episode", "timestep"])))) == 2
    assert piece_starts(np.array([4, 4, 5, 5]), np.array([6, 7, 0, 1])).tolist() == [0, 2]  # a part of one at first


def test_an_episode_that_goes_on_after_its_end_is_refused():
    rows = rows_of(episode())
    ends = [False, False, True, *rows["terminated"][3:]]
    with pytest.raises(ControlError, match="ends with step 2 and goes on"):
        list(episodes_of(rows.remove_columns("terminated").add_column("terminated", ends)))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("action", [[0], [0, 1, 2]], r"same number .* has \[1, 3\]"),
        ("action", [[0, 1], None], "missing"),
        ("action", [[0, None], [1, 0]], "missing"),
        ("action", [[], []], "list of numbers"),
        ("action", [0, 1], "list of numbers, is int64"),
        ("action", [[0.5], [1.0]], "whole numbers, are float64"),
        ("observation", [[0.0], [1.0, 2.0, 3.0]], r"same number .* has \[1, 3\]"),
        ("observation", [[0.0], None], "missing"),
        ("observation", [0.0, 1.0], "list of numbers, is double"),
        ("observation", [[[0.0]], [[1.0]]], "list of list"),
    ],
)
def test_lists_that_are_no_actions_or_observations(column, values, message):
    """They have as many numbers as good ones, and would be read as other steps' numbers."""
    columns = rows_of(episode(2, frames=False), features=5).with_format("arrow")[:].to_pydict()
    with pytest.raises(ControlError, match=message):
        list(episodes_of(Dataset.from_dict({**columns, column: values})))


def test_missing_columns_are_named():
    with pytest.raises(ControlError, match="no column 'timestep', 'seed'; its columns are episode, observation"):
        list(episodes_of(rows_of(episode()).remove_columns(["timestep", "seed"])))


def test_frames_that_cannot_be_read_are_refused():
    with pytest.raises(ControlError, match="5 bytes cannot be read as an image"):
        decode_frame(b"image")
    with pytest.raises(ControlError, match="got float64 of shape"):
        encode_frame(np.zeros((4, 4, 3)))
    types = features_of(None, (3, 3))
    table = table_of(episode(), 0, types.arrow_schema)
    column = table["observation"].to_pylist()
    small = encode_frame(np.zeros((4, 4, 3), np.uint8))
    for image, message in (({"bytes": None, "path": "a.png"}, "embed the files"), ({"bytes": small}, "one size")):
        rows = Dataset.from_list([{"observation": one} for one in [*column[:2], image]])
        with pytest.raises(ControlError, match=message):
            observations_of(rows.with_format("arrow")[:]["observation"])
