"""Hits every piece of work with faults, and writes what came of it to docs/faults.json and docs/faults.md.

    python -m tests.faults                      # kills, full disks and a failing Hub, twenty times each: an hour or two
    python -m tests.faults --kind hub --times 5 --json hub.json
    python -m tests.faults --kind kills --only "training msat" make_checkpoints

Linux; full disks are small ones that the command mounts in a namespace of its own. What is done is not done again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from hf_mech.hub import Measurement, Results

from .disk import filled, in_a_namespace_of_its_own
from .hub import EXCHANGES, FAULTS, cut_off, failing, hub_for_processes
from .kills import killed
from .page import JSON, write_page
from .work import WORKS

Trial = tuple[str, str, Callable[[Path], list[Measurement]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=["kills", "disk", "hub"], default=["kills", "disk", "hub"])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="pieces of work, as the tables call them")
    parser.add_argument("--times", type=int, default=20, help="faults of each kind; 20")
    parser.add_argument("--json", type=Path, default=JSON)
    args = parser.parse_args()
    if "disk" in args.kind:
        in_a_namespace_of_its_own()
    began, results = time.perf_counter(), _results(args.json)
    with tempfile.TemporaryDirectory() as home, hub_for_processes(Path(home)) as hub:
        kinds: dict[str, Iterator[Trial]] = {
            "kills": chain(
                ((name, "kill -9", partial(killed, work, args.times)) for name, work in WORKS.items()),
                ((exchange.name, "kill -9", partial(cut_off, hub, exchange, args.times)) for exchange in EXCHANGES),
            ),
            "disk": ((name, "full disk", partial(filled, work, args.times)) for name, work in WORKS.items()),
            "hub": (
                (exchange.name, fault, partial(failing, hub, exchange, fault, args.times))
                for exchange in EXCHANGES
                for fault in FAULTS
            ),
        }
        done = {(entry.config, entry.setting["fault"]) for entry in results}
        trials = [
            trial
            for kind in args.kind
            for trial in kinds[kind]
            if trial[:2] not in done and (not args.only or trial[0] in args.only)
        ]
        for name, fault, trial in (bar := tqdm(trials)):
            bar.set_postfix_str(f"{name}, {fault}")
            with tempfile.TemporaryDirectory() as folder:
                results += trial(Path(folder))
            seconds = time.perf_counter() - began
            Results.collect("faults", seconds=seconds, results=results, command="python -m tests.faults").save(
                args.json
            )
    if args.json == JSON:
        write_page()


def _results(file: Path) -> list[Measurement]:
    return list(Results.load(file).results) if file.exists() else []


if __name__ == "__main__":
    main()
