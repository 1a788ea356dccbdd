"""The data set of ViZDoom trajectories by `load_dataset`: any number of processes, streaming, the Hub, and kills."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import DatasetCard, HfApi

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.control import episode_seed, make_environment, make_policy
from hf_mech.control.errors import ControlError
from hf_mech.control.recording import record_episode
from hf_mech.control.rows import episodes_of
from hf_mech.control.windows import ContextWindows, ContextWindowStream
from hf_mech.dataset_builders.vizdoom_trajectories import VizdoomTrajectories
from hf_mech.hub import push_dataset
from tests.control.test_episodes import same
from tests.control.test_windows import digest
from tests.hub.conftest import api, hub  # noqa: F401  # fixtures
from tests.hub.local_hub import LocalHub

NAME = "hf_mech/vizdoom_trajectories"
ROOT = Path(__file__).parents[2]
# Small frames, and short episodes: who walks at random in Deadly Corridor does not live long.
SMALL = {"num_train": 3, "num_test": 1, "frame_size": (18, 32)}
HOME, CORRIDOR = "my_way_home-expert", "deadly_corridor-random"


@pytest.fixture(scope="module")
def home():
    return load_dataset(NAME, HOME, **SMALL)


def test_the_listed_configs():
    names = [f"{s}-{p}" for s in ("my_way_home", "deadly_corridor") for p in ("expert", "noisy", "random")]
    assert get_dataset_config_names(NAME) == names
    info = VizdoomTrajectories(config_name="deadly_corridor-noisy", noise=0.25).info
    assert "4 components of the sizes 3, 3, 3, 2, and frames are 72 x 128" in info.description
    assert "25% are replaced" in info.description
    assert "Decision Transformers" in info.citation


def test_episodes_are_whole_and_what_the_seed_says(home):
    for split, count in (("train", 3), ("test", 1)):
        episodes = list(episodes_of(home[split]))
        assert [e.seed for e in episodes] == [episode_seed(0, split, i) for i in range(count)]
        assert all(e.observations.shape[1:] == (18, 32, 3) for e in episodes)
    with make_environment("hf_mech/MyWayHome-v0", frame_size=(18, 32)) as environment:
        alone = record_episode(environment, make_policy("expert"), episode_seed(0, "train", 2))
    assert same(alone, list(episodes_of(home["train"]))[2])
    assert alone.success[-1]
    assert alone.returns_to_go[0] > 0.9


@pytest.mark.slow
def test_processes_and_streaming_change_nothing(tmp_path):
    one = load_dataset(NAME, CORRIDOR, **SMALL, cache_dir=str(tmp_path / "one"))
    two = load_dataset(NAME, CORRIDOR, **SMALL, cache_dir=str(tmp_path / "two"), num_proc=2)
    streamed = load_dataset(NAME, CORRIDOR, **SMALL, streaming=True)
    assert streamed["train"].num_shards == 16
    for split in one:
        assert one[split].with_format("arrow")[:].equals(two[split].with_format("arrow")[:])
        assert all(same(*pair) for pair in zip(episodes_of(one[split]), episodes_of(streamed[split]), strict=True))
    assert one["train"].features["action"].length == 4


@pytest.mark.slow
def test_a_push_to_the_hub_and_a_stream_from_it(home, hub: LocalHub, api: HfApi, monkeypatch, tmp_path):  # noqa: F811
    """The card has the citation, frames stay exact, and windows come from the stream."""
    push_dataset(VizdoomTrajectories(config_name=HOME, **SMALL), "tester/home", api=api)
    head = hub.repository("tester/home", "dataset").history()[0]
    assert "Decision Transformers" in DatasetCard(head.files["README.md"].data.decode()).text
    program = f"""
from datasets import load_dataset
from hf_mech.control.windows import ContextWindowStream
from tests.control.test_windows import digest
stream = load_dataset("tester/home", {HOME!r}, split="train", streaming=True)
print(digest(ContextWindowStream(stream, 30, (3, 3), buffer_size=0)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=hub.environment(tmp_path / "home") | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    windows = ContextWindows(home["train"], 30)
    assert done.stdout.strip() == digest(windows[i] for i in range(len(windows)))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            HOME,
            {"noise": 0.1},
            "does not take noise=0.1; leave it out, or take my_way_home-noisy",
        ),
        (HOME, {"hold": 4}, "or take my_way_home-noisy or my_way_home-random"),
        ("my_way_home-noisy", {"noise": 1.5}, "noise must be a probability"),
        (HOME, {"num_train": 0}, "num_train must be a whole number, 1"),
        (HOME, {"seed": -1}, "seed must be"),
        (HOME, {"frame_size": (0, 8)}, "frame_size must be"),
        (HOME, {"frame_size": 72}, r"\(height, width\).*got 72"),
        (HOME, {"skill": 6}, "skill must be"),
    ],
)
def test_wrong_settings_are_refused(name, changes, message):
    with pytest.raises(ControlError, match=message):
        load_dataset(NAME, name, **changes)


def test_an_unknown_config_is_refused():
    with pytest.raises(ValueError, match="BuilderConfig 'my_way_home-best' not found"):
        load_dataset(NAME, "my_way_home-best")


GENERATION = """
import sys
import hf_mech
from datasets import load_dataset
print("began", flush=True)
load_dataset(*{name!r}, **{options!r}, cache_dir={cache!r}, num_proc=2)
print("ended", flush=True)
"""


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}


def _engines(folder: Path) -> list[str]:
    """The processes that work in the folder, which is that of the engines' temporary files."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_generation_leaves_no_engine_and_no_half_shard(kills, tmp_path):
    """Killed at any time, it leaves no data set that could be loaded; started again, it makes the right one."""
    folder = tmp_path.resolve() / "engines"
    folder.mkdir()
    options = {"num_train": 2 * kills, "num_test": 1, "frame_size": (18, 32)}
    cache = tmp_path / "cache"
    program = GENERATION.format(name=(NAME, "my_way_home-random"), options=options, cache=str(cache))
    clock = random.Random(0)
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", program],
            env=_environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout.readline() == "began\n"
            time.sleep(clock.uniform(0.3, 2.5))
            os.kill(process.pid, signal.SIGKILL)  # this one alone: the others end by themselves, and close the pipe
            ended = process.stdout.read() == "ended\n"
        deadline = time.monotonic() + 20
        while _engines(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert _engines(folder) == []
        assert list(folder.glob("hf-mech-engine-*")) == []
        assert ended or not list(cache.glob("**/dataset_info.json"))
    again = load_dataset(NAME, "my_way_home-random", **options, cache_dir=str(cache))
    other = load_dataset(NAME, "my_way_home-random", **options, cache_dir=str(tmp_path / "other"))
    for split in other:
        assert again[split].with_format("arrow")[:].equals(other[split].with_format("arrow")[:])


def test_windows_of_a_stream_that_is_played_as_it_is_read():
    stream = load_dataset(NAME, HOME, **SMALL, streaming=True, split="test")
    window = next(iter(ContextWindowStream(stream, 10, (3, 3), buffer_size=0)))
    assert window["states"].shape == (10, 3, 18, 32)
    assert np.array_equal(window["timesteps"], range(10))
