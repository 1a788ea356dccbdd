"""A disk that fills up at a random moment; then there is room, and the same command again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hf_mech.hub import Measurement, measurement

from .processes import finish, start
from .work import Work, broken_files

_ENOUGH = 1 << 20  # kilobytes
_INSIDE = "HF_MECH_FAULTS_MAY_MOUNT"


def in_a_namespace_of_its_own() -> None:
    """Starts this command again where it may mount small disks of its own (Linux); returns if it is there already.

    Raises:
        SystemExit: the exit code of the command that was started.
    """
    if _INSIDE not in os.environ:
        command = ["unshare", "--map-root-user", "--mount", sys.executable, "-m", "tests.faults", *sys.argv[1:]]
        raise SystemExit(subprocess.call(command, env={**os.environ, _INSIDE: "1"}))


@contextmanager
def _small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def filled(work: Work, times: int, folder: Path) -> list[Measurement]:
    """Does the work on a disk with enough room, then on disks that are too small.

    Raises:
        RuntimeError: the work failed without a fault.
    """
    dice = random.Random(work.name)
    disk, printed = folder / "disk", folder / "printed.txt"
    with _small_disk(disk, _ENOUGH):
        if code := finish(start(work.do, disk, printed)):
            raise RuntimeError(f"{work.name}: exit code {code}; {printed.read_text()[-2000:]}")
        straight, needed = work.result(disk), _used(disk)
    seen: dict[str, list[float]] = {"says_so": [], "whole": [], "equal": []}
    while len(seen["whole"]) < times:
        with _small_disk(disk, max(4, int(dice.uniform(0, needed)))):
            code, said = finish(start(work.do, disk, printed)), printed.read_text()
            if code != 0:
                seen["says_so"].append(float(says_so(work, said)))
                broken = broken_files(disk)
                seen["whole"].append(float(not broken))
            subprocess.run(["mount", "-o", f"remount,size={_ENOUGH}k", disk], check=True)
            again = finish(start(work.do, disk, printed))
            equal = again == 0 and work.result(disk) == straight
            if code != 0:
                seen["equal"].append(float(equal))
                _tell(work, said, broken, "" if equal else f"{again}: {printed.read_text()[-500:]}")
            elif not equal:
                raise RuntimeError(f"{work.name}: a disk of enough room gives another result; {printed.read_text()}")
            else:
                needed *= 0.9  # what is removed at the end is not needed at once
    return [measurement("faults", work.name, {"fault": "full disk"}, metric, values) for metric, values in seen.items()]


def _used(folder: Path) -> float:
    """Kilobytes."""
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize / 1024


def says_so(work: Work, said: str) -> bool:
    """Whether the disk is named as the cause: by a command in its only line, by a library above its own error."""
    if work.group == "data":
        return "No space left on device" in said
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    return "cannot be written" in last


def _tell(work: Work, said: str, broken: list[str], wrong: str) -> None:
    if not says_so(work, said):
        print(f"{work.name}: says {said[-600:]}", flush=True)
    for line in filter(None, [*broken, wrong]):
        print(f"{work.name}: {line}", flush=True)
