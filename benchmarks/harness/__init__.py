"""Common code of the benchmarks: fair timing, peak memory, and results.json."""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hf_mech.hub import Measurement, Results


def arguments(doc: str | None, file: str, runs: int) -> argparse.Namespace:
    """`--runs` and `--output` of a benchmark, the latter beside its script."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help=f"timed runs of each side (default: {runs})")
    parser.add_argument("--output", type=Path, default=Path(file).with_suffix(".json"))
    return parser.parse_args()


def take_turns(sides: Mapping[str, Callable[[], object]], runs: int) -> dict[str, list[float]]:
    """Seconds of `runs` calls of each side after a warm-up. Sides alternate, so a busy machine slows all equally."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(runs):
        for name, side in sides.items():
            began = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def ratios(seconds: Mapping[str, list[float]], slow: str, fast: str) -> list[float]:
    """How many times faster, pair by pair."""
    return [a / b for a, b in zip(seconds[slow], seconds[fast], strict=True)]


def peak_memory(function: Callable[..., object], *args: object) -> float:
    """Megabytes that a call adds at its peak to a process of its own, after a first, small call. Linux only.

    Args:
        function: has a keyword `warm_up`; True runs everything at the smallest size.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_grown, (function, args))


def peak_resident(function: Callable[..., object], *args: object) -> float:
    """Megabytes of a process of its own at its peak, the interpreter and all imports included. Linux only.

    Args:
        function: has a keyword `warm_up`, as for [`peak_memory`].
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_reached, (function, args))


def _reached(function: Callable[..., object], args: tuple) -> float:
    function(*args, warm_up=False)
    return _status("VmHWM") / 1024


def _grown(function: Callable[..., object], args: tuple) -> float:
    function(*args, warm_up=True)
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # Linux: the peak counts from here, not from the imports
    before = _status("VmRSS")
    function(*args, warm_up=False)
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    """A figure of this process in kilobytes."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def report(output: Path, measured: list[Measurement], began: float) -> None:
    """Writes results.json and prints the medians."""
    Results.collect(output.stem, seconds=time.perf_counter() - began, results=measured).save(output)
    for entry in measured:
        setting = ", ".join(f"{key}={value}" for key, value in entry.setting.items())
        print(f"{entry.config:16} {setting:60} {entry.metric:40} median {statistics.median(entry.values):10.4g}")
    print(f"written to {output}")
