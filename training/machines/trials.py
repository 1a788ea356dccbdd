"""The programs of the table, and random prompts of each: what is run, and whether its result is right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from hf_mech.programs.nested_functions import grammar as nested_functions
from hf_mech.programs.psl.library import program_names, read_program
from hf_mech.programs.psl.machine import Registers, Run
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.turing import run_turing
from hf_mech.programs.templatic import grammar as templatic

from .tables import TABLES, Start
from .words import FORMS, INDUCTION_WORDS

MOST_WORDS = 20
"""The greatest length of a prompt of the small programs."""

_DATA: Mapping[str, Callable[..., Iterator[Any]]] = {
    "nested_functions": partial(nested_functions.generate, "rlw"),
    "pargen": partial(templatic.generate, "1_shot_rlw"),
    "pargen_k_shot": partial(templatic.generate, "2_shot_rlw"),
}
"""The prompts of programs that have a data set: those of its split `test`."""
_COMPILED, _UNIVERSAL = "turing", "universal"


class Machine(Protocol):
    """`PSM`, `QKVM` or `DAT` with a program."""

    def run(self, words: list[str], *, registers: Registers | None = None, max_new_tokens: int) -> Run:
        """The run of a prompt."""


Trial = Callable[[Machine], tuple[Run, bool]]
"""Runs one prompt in a machine: the run, and whether its result is right."""


@dataclass(frozen=True)
class Task:
    """A program and its prompts.

    Attributes:
        program: what the machines run.
        trials: prompts without end, by a seed.
    """

    program: Program
    trials: Callable[[int], Iterator[Trial]]


def task_names() -> tuple[str, ...]:
    """Every program of the package by its name, a Turing machine as `turing/increment` and `universal/increment`."""
    turing = tuple(f"{way}/{table}" for way in (_COMPILED, _UNIVERSAL) for table in TABLES)
    return (*FORMS, *(name for name in program_names() if name in _DATA), *turing)


def task_named(name: str) -> Task:
    """The program and the prompts of a name of `task_names`."""
    way, _, table = name.partition("/")
    if table:
        return _turing(table, way == _UNIVERSAL)
    return Task(read_program(name), lambda seed: _of_data(name, seed) if name in _DATA else _small(name, seed))


def _small(name: str, seed: int) -> Iterator[Trial]:
    function, form = FORMS[name]
    draw = random.Random(f"{name} {seed}")
    most = INDUCTION_WORDS if name == "induction" else 2 * MOST_WORDS
    while True:
        prompt = form(draw, MOST_WORDS)
        yield Completion(prompt, function(prompt), most)


def _of_data(name: str, seed: int) -> Iterator[Trial]:
    start = 0
    while True:
        for example in _DATA[name]("test", seed, start, start + 100):
            completion = example.completion.split()
            yield Completion(example.prompt.split(), completion, len(completion) + 8)
        start += 100


@dataclass(frozen=True)
class Completion:
    """A prompt and the one right completion of it.

    Attributes:
        prompt, completion: words.
        most: words that a machine may say.
    """

    prompt: list[str]
    completion: list[str]
    most: int

    def __call__(self, machine: Machine) -> tuple[Run, bool]:
        made = machine.run(self.prompt, max_new_tokens=self.most)
        return made, made.completion == self.completion


def _turing(table: str, universal: bool) -> Task:
    machine, form = TABLES[table]

    def trial(start: Start) -> Trial:
        def run(runner: Machine) -> tuple[Run, bool]:
            blanks = {"left": start.left, "right": start.right}
            ended = run_turing(machine, start.tape, **blanks, universal=universal, runner=lambda _: runner)
            return ended.run, start.is_right(ended)

        return run

    def trials(seed: int) -> Iterator[Trial]:
        draw = random.Random(f"{table} {seed}")
        while True:
            yield trial(form(draw))

    return Task(read_program("universal") if universal else machine.to_program(), trials)
