"""learn_lifted_domain: seconds and peak memory, by the actions of the log, the objects and the patterns; beside LOCM.

    python benchmarks/lifted_learning.py

Traces of 50 uniform steps, as lists of `GroundAction`; one thread. Sides: `code`, `learn_lifted_domain` as it is;
`locm`, macq's LOCM on the same traces, as long as a tenth of them took it at most 60 s. Seconds are of the processor.
Memory is what the call adds at its peak, the log included. A pattern is an action and some of its places, of all kinds
together. The compiled parts are compiled, and the instance is drawn, before the clock starts.
"""

from __future__ import annotations

import signal
import time
from functools import cache
from typing import Any

from harness import arguments, peak_memory, report

from hf_mech.hub import Measurement, measurement
from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning.events import kinds_of, read_steps
from hf_mech.planning.lifted.learning.learn import LiftedCode, learn_lifted_domain
from hf_mech.planning.lifted.walks import LiftedWalks
from hf_mech.planning.locm import learn_with_locm
from hf_mech.planning.problem import PlanningError

DOMAIN, SIZES = "logistics", (1_000, 10_000, 100_000, 1_000_000)
OTHERS, OTHERS_SIZE = ("ferry", "rovers"), 10_000
LENGTH, LOCM_LIMIT = 50, 60

Traces = list[tuple[GroundAction, ...]]


@cache
def walks_of(domain: str, size: str) -> LiftedWalks:
    return LiftedWalks(instance(domain, size, 0))


def traces_of(domain: str, size: str, actions: int) -> Traces:
    """The log of a random walk."""
    return [trace.actions for trace in walks_of(domain, size).traces(actions, LENGTH)]


def code(traces: Traces) -> None:
    learn_lifted_domain(traces, progress=False)


def locm(traces: Traces) -> None:
    """Raises TimeoutError after `LOCM_LIMIT` seconds."""

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LOCM_LIMIT)
    try:
        learn_with_locm(traces)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def grown(name: str, domain: str, size: str, actions: int, *, warm_up: bool) -> None:
    {"code": code, "locm": locm}[name](traces_of(domain, size, 200 if warm_up else actions))


def measured_on(domain: str, size: str, actions: int, runs: int, sides: dict[str, Any]) -> list[Measurement]:
    """Seconds and megabytes of each side; one that fails, or takes longer than its limit, is removed from `sides`."""
    traces = traces_of(domain, size, actions)
    steps = read_steps(traces)
    setting = {
        "actions": actions,
        "instance": size,
        "objects": len(steps.objects),
        "patterns": sum(len(kind.patterns) for kind in kinds_of(steps, LiftedCode().most_arity)),
    }
    found = []
    for name, side in list(sides.items()):
        seconds = []
        try:
            side(traces[:4])
            for _ in range(runs if actions <= OTHERS_SIZE else 1):
                began = time.process_time()
                side(traces)
                seconds.append(time.process_time() - began)
            megabytes = [peak_memory(grown, name, domain, size, actions)]
        except (TimeoutError, PlanningError):  # LOCM cannot read the traces of every domain
            del sides[name]
            continue
        own = setting | {"learner": name}
        found += [
            measurement("lifted_learning", domain, own, "cpu_seconds", seconds),
            measurement("lifted_learning", domain, own, "peak_memory_megabytes", megabytes),
        ]
    return found


def main() -> None:
    args = arguments(__doc__, __file__, runs=3)
    began, measured = time.perf_counter(), []
    sides: dict[str, Any] = {"code": code, "locm": locm}
    for actions in SIZES:
        measured += measured_on(DOMAIN, "small", actions, args.runs, sides)
        report(args.output, measured, began)
    for domain in (DOMAIN, *OTHERS):
        for size in ("small", "big"):
            if (domain, size) != (DOMAIN, "small"):
                measured += measured_on(domain, size, OTHERS_SIZE, args.runs, {"code": code, "locm": locm})
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
