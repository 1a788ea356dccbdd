"""Data for decision transformers: how fast it is made, how large it is, how fast it is read, and with how much memory.

    python benchmarks/trajectories.py                             # 500,000 steps are read; needs 2 GB of disk
    python benchmarks/trajectories.py --steps 20000 --episodes 5

- `generation`: steps a second of one process, with the engine's start, the expert, and lossless frames; and the same
  without the pauses that other processes cause (seconds of this process and of its engine).
- `frame`: bytes of a frame and microseconds to encode and to decode it, in some lossless formats.
- `reading`: context windows a second, and the memory that a pass over all steps adds. `own_megabytes` is memory of the
  process itself. `file_megabytes` are pages of the data's file, which the system takes back when it needs them.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from harness import report
from numpy.typing import NDArray
from PIL import Image

from hf_mech.control import make_policy
from hf_mech.control.episodes import Episode
from hf_mech.control.recording import Recording, built
from hf_mech.control.rows import decode_frame, episode_of, features_of, table_of
from hf_mech.control.windows import ContextWindows, ContextWindowStream
from hf_mech.hub import Measurement, measurement

TASK = "trajectories"
SCENARIOS = {
    "my_way_home": ("hf_mech/MyWayHome-v0", (3, 3)),
    "deadly_corridor": ("hf_mech/DeadlyCorridor-v0", (3, 3, 3, 2)),
}
CONTEXT = 30
STEPS_OF_AN_EPISODE = 100
FORMATS: dict[str, dict[str, Any]] = {
    "png-1": {"format": "PNG", "compress_level": 1},
    "png-6": {"format": "PNG", "compress_level": 6},
    "webp-0": {"format": "WEBP", "lossless": True, "method": 0, "quality": 0},
    "webp-4": {"format": "WEBP", "lossless": True, "method": 4, "quality": 80},
}


def generation(scenario: str, policy: str, episodes: int, runs: int) -> tuple[list[Measurement], NDArray[np.uint8]]:
    """Speed and size of a scenario's data, and frames of it."""
    environment, sizes = SCENARIOS[scenario]
    schema = features_of(None, sizes).arrow_schema
    speeds, undisturbed, sizes_of_frames = [], [], []
    for run in range(runs):
        recording = Recording(environment, {}, make_policy(policy), run, "train", schema)
        began, busy = time.perf_counter(), _cpu_seconds()
        tables = list(recording.tables(range(episodes)))
        steps = sum(map(len, tables))
        speeds.append(steps / (time.perf_counter() - began))
        undisturbed.append(steps / (_cpu_seconds() - busy))
        sizes_of_frames += [len(image["bytes"]) for table in tables for image in table["observation"].to_pylist()]
    setting = {"scenario": scenario, "policy": policy, "episodes": episodes}
    return [
        measurement(TASK, "generation", setting, "steps_per_second", speeds),
        measurement(TASK, "generation", setting, "steps_per_cpu_second", undisturbed),
        measurement(TASK, "generation", setting, "bytes_per_frame", [statistics.fmean(sizes_of_frames)]),
    ], np.concatenate([episode_of(table).observations for table in tables[:5]])[:400]


def formats(scenario: str, frames: NDArray[np.uint8], runs: int) -> Iterator[Measurement]:
    """Size and speed of lossless formats."""
    for name, options in FORMATS.items():
        encoded = [_encoded(frame, options) for frame in frames]
        assert all((decode_frame(image) == frame).all() for image, frame in zip(encoded, frames, strict=True))
        there = [_microseconds(lambda f, o=options: _encoded(f, o), frames) for _ in range(runs)]
        back = [_microseconds(decode_frame, encoded) for _ in range(runs)]
        setting = {"scenario": scenario, "format": name}
        yield measurement(TASK, "frame", setting, "bytes", [statistics.fmean(map(len, encoded))])
        yield measurement(TASK, "frame", setting, "microseconds_to_encode", there)
        yield measurement(TASK, "frame", setting, "microseconds_to_decode", back)


def synthetic(steps: int, folder: str, frame_size: tuple[int, int] = (72, 128)) -> datasets.Dataset:
    """A data set of so many steps, whose frames are hardly smaller than a game's."""
    generator = np.random.default_rng(0)
    small = generator.integers(0, 256, (STEPS_OF_AN_EPISODE, 12, 12, 3), np.uint8)
    episode = Episode(
        observations=np.stack([np.asarray(Image.fromarray(f).resize(frame_size[::-1], 2)) for f in small]),
        actions=generator.integers(0, 3, (STEPS_OF_AN_EPISODE, 2)),
        rewards=np.ones(STEPS_OF_AN_EPISODE, np.float32),
        success=np.zeros(STEPS_OF_AN_EPISODE, bool),
        terminated=True,
        truncated=False,
        seed=0,
    )
    features = features_of(None, (3, 3))
    table = table_of(episode, 0, features.arrow_schema)

    def tables(numbers: list[int]) -> Iterator[pa.Table]:
        for number in numbers:
            yield table.set_column(0, "episode", pa.array(np.full(len(table), number, np.int32)))

    return built(tables, list(range(steps // STEPS_OF_AN_EPISODE)), features, cache_dir=folder)


def read(rows: datasets.Dataset, kind: str, most: int) -> int:
    """Reads windows, each step of the data once, `most` steps at most. Returns the number of windows."""
    count = 0
    if kind == "map":
        windows = ContextWindows(rows, CONTEXT)
        for index in range(0, min(len(windows), most), CONTEXT):
            count += len(windows[index]["actions"]) > 0
        return count
    for window in ContextWindowStream(rows.to_iterable_dataset(num_shards=4), 1):
        count += len(window["actions"])
        if count >= most:
            break
    return count


def pass_over(folder: str, kind: str, steps: int) -> dict[str, float]:
    """Speed and added memory of a pass over data that `save_to_disk` wrote, after a first, short one."""
    rows = datasets.load_from_disk(folder)
    read(rows, kind, min(steps, 12_000))
    before = _resident()
    began = time.perf_counter()
    count = read(rows, kind, steps)
    seconds = time.perf_counter() - began
    after = _resident()
    return {"windows_per_second": count / seconds, **{key: after[key] - before[key] for key in after}}


def reading(steps: int, runs: int) -> Iterator[Measurement]:
    """Both kinds of windows, each pass in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        synthetic(steps, f"{folder}/cache").save_to_disk(f"{folder}/rows")
        for kind in ("map", "stream"):
            context = multiprocessing.get_context("spawn")
            with context.Pool(1, maxtasksperchild=1) as pool:
                passes = [pool.apply(pass_over, (f"{folder}/rows", kind, steps)) for _ in range(runs)]
            setting = {"steps": steps, "kind": kind, "context": CONTEXT if kind == "map" else 1}
            for metric in passes[0]:
                yield measurement(TASK, "reading", setting, metric, [one[metric] for one in passes])


def _encoded(frame: NDArray[np.uint8], options: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    Image.fromarray(frame).save(target, **options)
    return target.getvalue()


def _microseconds(function: Callable[[Any], object], items: Any) -> float:
    began = time.process_time()
    for item in items:
        function(item)
    return (time.process_time() - began) / len(items) * 1e6


def _cpu_seconds() -> float:
    """Of this process and of its children that have ended, such as an engine that was closed."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _resident() -> dict[str, float]:
    """Megabytes of this process, and of files that it has in memory. Linux only."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    keys = {"own_megabytes": "RssAnon", "file_megabytes": "RssFile"}
    return {name: int(lines[key].split()[0]) / 1024 for name, key in keys.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each figure (default: 3)")
    parser.add_argument("--episodes", type=int, default=50, help="episodes of a run of the generation (default: 50)")
    parser.add_argument("--steps", type=int, default=500_000, help="steps to be read (default: 500,000)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args()
    began = time.perf_counter()
    measured: list[Measurement] = []
    for scenario in SCENARIOS:
        figures, frames = generation(scenario, "expert", args.episodes, args.runs)
        measured += [*figures, *formats(scenario, frames, args.runs)]
    measured += reading(args.steps, args.runs)
    report(args.output, measured, began)


if __name__ == "__main__":
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    main()
