"""Minari data sets, written and read without loss, and by Minari itself."""

import sys
from dataclasses import replace

import gymnasium
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from hf_mech.control import MissingExtraError
from hf_mech.control.errors import ControlError
from hf_mech.control.minari_format import minari_episodes, read_minari, write_minari
from hf_mech.control.recording import record
from hf_mech.control.rows import episodes_of
from tests.control.squares import ID
from tests.control.test_episodes import same


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Minari's own folder."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


@pytest.mark.parametrize(("environment", "options"), [(ID, {"width": 40, "height": 32}), ("CartPole-v1", {})])
def test_the_round_trip_is_exact(environment, options):
    """The frames are so large that Minari would make JPEGs of them, were it not told otherwise."""
    rows = record(environment, "random", 4, **options)
    written = write_minari(rows, "tests/round-v0", environment, **options)
    assert written.total_episodes == 4
    assert written.total_steps == len(rows)
    read = read_minari("tests/round-v0")
    assert read.features == rows.features
    assert read.with_format("arrow")[:].equals(rows.with_format("arrow")[:])
    assert read_minari(written, num_proc=2).with_format("arrow")[:].equals(rows.with_format("arrow")[:])
    episodes = list(minari_episodes(written))
    write_minari(episodes, "tests/round-v1", environment, **options)
    for one, other in zip(episodes, minari_episodes("tests/round-v1"), strict=True):
        assert same(one, other)
        assert (one.final_observation == other.final_observation).all()


def test_others_can_use_what_is_written():
    rows = record("CartPole-v1", "random", 3)
    write_minari(rows, "tests/cart-v0", "CartPole-v1", metadata={"author": "A", "algorithm_name": "random"})
    data = minari.load_dataset("tests/cart-v0")
    assert data.action_space == gymnasium.spaces.Discrete(2)
    assert data.recover_environment().spec.max_episode_steps == 500
    episode = data[1]
    assert episode.actions.shape == (len(episode),)
    assert episode.observations.shape == (len(episode) + 1, 4)
    assert episode.rewards.sum() == len(episode)
    assert [data[i].observations[0].tolist() for i in range(3)] == [
        e.observations[0].tolist() for e in episodes_of(rows)
    ]


def of_others(folder, episodes, name="others-v0", observation=None, action=None):
    """A data set as other people write it: float64, other infos, no seeds."""
    observation = observation or gymnasium.spaces.Box(-1, 1, (3,), np.float64)
    action = action or gymnasium.spaces.Discrete(4, start=1)
    path = folder / name / "data"
    path.parent.mkdir(parents=True)
    storage = MinariStorage.new(path, observation, action)
    storage.update_metadata({"dataset_id": name, "minari_version": minari.__version__})
    storage.update_episodes(EpisodeBuffer(**episode) for episode in episodes)
    return path


def of_steps(steps, end=True, **changes):
    return {
        "observations": np.linspace(0, 1, 3 * (steps + 1)).reshape(steps + 1, 3),
        "actions": np.arange(steps) % 4 + 1,
        "rewards": np.arange(steps) / 10,
        "terminations": np.zeros(steps, bool),
        "truncations": (np.arange(steps) == steps - 1) & end,
        "infos": {"success": np.arange(steps) == steps - 1},
        **changes,
    }


def test_the_data_of_others(folder):
    path = of_others(folder, [of_steps(5), of_steps(3, infos={})])
    rows = read_minari("others-v0")
    assert rows["action"][:] == [[0], [1], [2], [3], [0], [0], [1], [2]]
    assert rows["success"][:] == [False] * 4 + [True] + [False] * 3
    assert set(rows["seed"][:]) == {-1}
    assert rows[0]["return_to_go"] == pytest.approx(1.0)
    assert rows["truncated"][:] == [False] * 4 + [True, False, False, True]
    assert read_minari(path).to_list() == read_minari(path.parent).to_list() == rows.to_list()


def test_episodes_without_an_end_are_refused_or_dropped(folder):
    of_others(folder, [of_steps(5), of_steps(4, end=False), of_steps(3)])
    with pytest.raises(ControlError, match="its last step, 3"):
        read_minari("others-v0")
    rows = read_minari("others-v0", unfinished="drop")
    assert rows["episode"][:] == [0] * 5 + [1] * 3
    only = minari.load_dataset("others-v0").filter_episodes(lambda e: len(e) == 3)
    assert len(read_minari(only)) == 3


def test_what_cannot_be_read_is_refused(folder):
    with pytest.raises(ControlError, match="no Minari data set 'nothing-v0'"):
        read_minari("nothing-v0")
    of_others(folder, [of_steps(5, terminations=np.arange(5) == 2)])
    with pytest.raises(ControlError, match=r"ends with steps \[2, 4\]"):
        read_minari("others-v0")
    box = gymnasium.spaces.Box(-1, 1, (2,))
    with pytest.raises(ControlError, match="actions must be Discrete"):
        read_minari(of_others(folder, [], "box-v0", action=box))
    both = gymnasium.spaces.Dict(a=box)
    with pytest.raises(ControlError, match="observations must be uint8 frames"):
        read_minari(of_others(folder, [], "dict-v0", observation=both))


def test_wrong_and_taken_names_are_refused(folder):
    rows = record("CartPole-v1", "random", 1)
    for name in ("a b-v0", "cart", ""):
        with pytest.raises(ControlError, match=r"must be \[namespace/\]name-v0"):
            write_minari(rows, name, "CartPole-v1")
    write_minari(rows, "cart-v0", "CartPole-v1")
    with pytest.raises(ControlError, match="There is a Minari data set 'cart-v0' already"):
        write_minari(rows, "cart-v0", "CartPole-v1")


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", "here")
    rows = record("CartPole-v1", "random", 1)
    write_minari(rows, "cart-v0", "CartPole-v1")
    assert read_minari("cart-v0").to_list() == rows.to_list()


def test_a_writing_that_fails_leaves_nothing(folder):
    rows = record("CartPole-v1", "random", 2)
    with pytest.raises(ControlError, match="has no end"):
        write_minari(rows.select(range(len(rows) - 1)), "cart-v0", "CartPole-v1")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ("hf_mech/Rooms-v0", {"frame_size": (36, 40)}, r"observations of shape \[4\] .* such as frame_size"),
        ("Acrobot-v1", {}, r"observations of shape \[4\] and 1 .*Acrobot-v1 has observations of shape \[6\]"),
    ],
)
def test_episodes_of_another_environment_are_not_written(folder, environment, options, message):
    rows = record("CartPole-v1", "random", 1)
    with pytest.raises(ControlError, match=message):
        write_minari(rows, "cart-v0", environment, **options)
    (one,) = episodes_of(rows)
    for actions in (one.actions + 1, np.hstack([one.actions, one.actions])):  # the second button would be lost
        with pytest.raises(ControlError, match=r"components of the sizes \[2\]"):
            write_minari([replace(one, actions=actions)], "cart-v0", "CartPole-v1")
    with pytest.raises(ControlError, match="no episodes"):
        write_minari([], "cart-v0", "CartPole-v1")
    assert list(folder.iterdir()) == []


def test_actions_outside_their_own_space_are_not_read(folder):
    of_others(folder, [of_steps(5), of_steps(3, actions=np.array([1, 5, 1]))])
    with pytest.raises(ControlError, match=r"Episode 1 has actions that are not of .* Discrete\(4, start=1\)"):
        read_minari("others-v0")


def test_without_minari_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hf-mech\[minari\]'"):
        read_minari("cart-v0")
