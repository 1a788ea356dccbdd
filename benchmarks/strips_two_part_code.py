"""The annealing of the two-part code: what weighing one move costs, incrementally and by counting all bits anew.

    python benchmarks/strips_two_part_code.py

Traces of the bundled domains, one chain at three quarters of a short schedule, one thread. Sides: sweeps of
`kernel.anneal`, which weigh and make moves (`incremental`); the compiled count of all bits from the guess (`anew`); the
formula, position by position, in Python (`reference`). Seconds are those of a move. Peak memory is that of a one-chain
search, in MB.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import datasets
import numpy as np
from datasets import load_dataset
from harness import arguments, peak_memory, ratios, report, take_turns

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.hub import measurement
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.two_part_code import (
    Positions,
    Search,
    TwoPartCode,
    code_length_reference,
    domain_of,
    positions_of,
)
from hf_mech.planning.two_part_code.kernel import chain_of, data_bits

CASES = (("blocksworld-3b", 200), ("gripper-3b", 1000), ("gripper-8b", 1000))
SWEEPS, COUNTS = 1, 5
FORMS = ("incremental", "anew", "reference")


def traces_of(name: str, size: int) -> Any:
    """The training traces of a bundled domain, as rows."""
    datasets.disable_progress_bars()
    return load_dataset("hf_mech/strips_traces", name, num_train=size, num_test=2, seed=5)["train"]


def search_of(name: str, size: int, sweeps: int) -> tuple[Search, Positions, Any]:
    """A search of one chain, its traces as positions, and as rows."""
    rows, domain = traces_of(name, size), load_bundled(name).domain
    data = positions_of(rows["input_ids"], rows["labels"], domain.action_names)
    return Search(data, len(domain.propositions), [(0, 0)], TwoPartCode(sweeps=sweeps, first_traces=size)), data, rows


def sides_of(name: str, size: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Each form as a function, and how many moves a call weighs."""
    domain = load_bundled(name).domain
    search, data, rows = search_of(name, size, 60)
    search.advance(45)  # the guess is kept from two thirds on
    guess = search.best(0)
    moves = SWEEPS * len(domain.propositions) * 3 * len(domain.actions)

    def anew() -> float:
        return sum(data_bits(chain_of(guess.copy(), data), data)[0] for _ in range(COUNTS))

    learned = domain_of(guess, domain.action_names, "guess")
    traces, labels = list(rows["input_ids"]), list(rows["labels"])
    false_at_first = [0] * len(traces)

    def reference() -> float:
        return code_length_reference(learned, traces, labels, false_at_first, TwoPartCode())

    sides = {"incremental": partial(search.advance, SWEEPS), "anew": anew, "reference": reference}
    return sides, {"incremental": moves, "anew": COUNTS, "reference": 1}


def one_search(name: str, size: int, *, warm_up: bool) -> None:
    search_of("simple" if warm_up else name, 20 if warm_up else size, 2)[0].advance(1)


def main() -> None:
    args = arguments(__doc__, __file__, runs=5)
    began = time.perf_counter()
    measured = []
    for name, size in CASES:
        sides, moves = sides_of(name, size)
        seconds = take_turns(sides, args.runs)
        each = {form: [value / moves[form] for value in seconds[form]] for form in FORMS}
        setting = {"domain": name, "num_train": size, "actions": len(load_bundled(name).domain.actions)}
        for form in FORMS:
            own = setting | {"form": form}
            measured.append(measurement("strips_two_part_code", "move", own, "seconds", each[form]))
            if form != "incremental":
                faster = ratios(each, form, "incremental")
                measured.append(
                    measurement("strips_two_part_code", "move", own, "times_slower_than_incremental", faster)
                )
        peak = peak_memory(one_search, name, size)
        measured.append(measurement("strips_two_part_code", "search", setting, "peak_megabytes", [peak]))
        print(name, size, {form: float(np.median(each[form])) for form in FORMS}, f"{peak:.0f} MB", flush=True)
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
