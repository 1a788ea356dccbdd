"""One program on random prompts, in the PSM, the QKVM and compiled into a DAT: right, equal in all states, how fast."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest

from hf_mech.programs.psl.compile import compile_program, lower_program
from hf_mech.programs.psl.machine import Run
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.network import DAT

from ..engine import Job, Outcome, Settings, axis, fixed, option
from .trials import Machine, task_named, task_names

MACHINES = ("psm", "qkvm", "dat")


@dataclass(frozen=True, kw_only=True)
class Trials(Settings):
    """So many random prompts of a program."""

    PRESETS = {"usual": {}}

    task: str = axis("programs and Turing machines", task_names(), default=["all"])
    seed: int = fixed("of the prompts")
    program_digest: str = fixed("SHA-256 of the program's text")
    num_prompts: int = option("random prompts of each", default=20, least=1)


@dataclass(kw_only=True)
class TrialsOutcome(Outcome[Trials]):
    """What the machines made of the prompts.

    Attributes:
        right: by machine, how many prompts had the right result.
        states_compared: values of a register, in a cell, after a layer, in the PSM.
        states_equal: by machine, how many of these it has, too.
        layers: productions of the program.
        steps: layers of the longest run of a prompt, with repetitions.
        registers: of the program.
        longest: cells of the longest run.
        cpu_seconds_per_prompt: by machine, on average, with the record of all states; of all threads.
    """

    right: dict[str, int]
    states_compared: int
    states_equal: dict[str, int]
    layers: int
    steps: int
    registers: int
    longest: int
    cpu_seconds_per_prompt: dict[str, float]


def digest_of(task: str) -> str:
    """What tells one text of a program from another."""
    return hashlib.sha256(task_named(task).program.source.encode()).hexdigest()


def run_trials(settings: Trials, job: Job) -> TrialsOutcome:
    """Runs the prompts in one machine after another, and compares with the PSM, which defines the meaning."""
    began = time.perf_counter()
    task = task_named(settings.task)
    program = task.program
    machines: dict[str, Machine] = {
        "psm": PSM(program),
        "qkvm": QKVM(lower_program(program)),
        "dat": DAT(*compile_program(program)),
    }
    right, equal = dict.fromkeys(MACHINES, 0), dict.fromkeys(MACHINES, 0)
    spent = dict.fromkeys(MACHINES, 0.0)
    compared = steps = longest = 0
    with job.bar(settings.num_prompts, desc=settings.task, unit="prompts") as bar:
        for trial in islice(task.trials(settings.seed), settings.num_prompts):
            runs = {}
            for name, machine in machines.items():
                at = time.process_time()
                runs[name], is_right = trial(machine)
                spent[name] += time.process_time() - at
                right[name] += is_right
            for name, run in runs.items():
                equal[name] += sum(one == other for one, other in zip_longest(states(run), states(runs["psm"])))
            compared += sum(1 for _ in states(runs["psm"]))
            steps = max(steps, len(runs["psm"].trace[0]) - 1)
            longest = max(longest, len(runs["psm"].final))
            bar.update()
    job.tracker.log({f"right/{name}": number / settings.num_prompts for name, number in right.items()}, 0)
    return TrialsOutcome(
        settings=settings,
        origin=job.origin,
        seconds=time.perf_counter() - began,
        right=right,
        states_compared=compared,
        states_equal=equal,
        layers=len(list(program.productions)),
        steps=steps,
        registers=len(program.registers),
        longest=longest,
        cpu_seconds_per_prompt={name: second / settings.num_prompts for name, second in spent.items()},
    )


def states(run: Run) -> Iterator[tuple[object, ...]]:
    """Every register of every cell before the first layer and after each, with its place."""
    for group, steps in enumerate(run.trace):
        for step in steps:
            for cell, state in enumerate(step.cells):
                for register, value in sorted(state.items()):
                    yield group, step.path, cell, register, value
