"""`kill -9` at random moments; then the same command again, until it is done."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from hf_mech.hub import Measurement, measurement

from .processes import finish, orphans, start
from .work import Work, broken_files

IN_A_ROW = 3
"""Kills of one work before it is left to finish."""


def killed(work: Work, kills: int, folder: Path) -> list[Measurement]:
    """Does the work in one go, then again with kills; the figures are those of the table.

    Raises:
        RuntimeError: the work failed without a fault.
    """
    dice = random.Random(work.name)
    straight, seconds = _in_one_go(work, folder)
    seen: dict[str, list[float]] = {"whole": [], "no_orphans": [], "equal": []}
    while len(seen["whole"]) < kills:
        again = folder / "killed"
        for _ in range(min(IN_A_ROW, kills - len(seen["whole"]))):
            process = start(work.do, again, folder / "killed.txt")
            process.join(dice.uniform(0, seconds))
            if process.exitcode is not None:
                break  # done before its kill
            process.kill()
            process.join()
            seen["no_orphans"].append(float(orphans(process) == 0))
            broken = broken_files(again)
            seen["whole"].append(float(not broken))
            _tell(work, broken)
        code = finish(start(work.do, again, folder / "killed.txt"))
        equal = code == 0 and work.result(again) == straight
        seen["equal"].append(float(equal))
        if not equal:
            _tell(work, [f"exit code {code}; {(folder / 'killed.txt').read_text()[-500:]}"])
        shutil.rmtree(again)
    return [measurement("faults", work.name, {"fault": "kill -9"}, metric, values) for metric, values in seen.items()]


def _in_one_go(work: Work, folder: Path) -> tuple[str, float]:
    """What the work leaves, and its seconds."""
    straight = folder / "straight"
    finish(start(Path.exists, folder, folder / "warm.txt"))  # the server of the processes imports the libraries
    began = time.perf_counter()
    if code := finish(start(work.do, straight, folder / "straight.txt")):
        raise RuntimeError(f"{work.name}: exit code {code}; {(folder / 'straight.txt').read_text()[-2000:]}")
    seconds = time.perf_counter() - began
    return work.result(straight), seconds


def _tell(work: Work, wrong: list[str]) -> None:
    for line in wrong:
        print(f"{work.name}: {line}", flush=True)
