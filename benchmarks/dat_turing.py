"""A Turing machine as a transformer: the busy beaver of four states, compiled and in the prompt, against the PSM.

    python benchmarks/dat_turing.py

A run is 107 steps on an empty tape, on one thread. The table of the machine is in the weights (`compiled`: a production
an instruction and four that move), or in the prompt of the universal program (`universal`: five productions, eight
cells more). Sides: the PSM, which runs the program symbolically, and the DAT (backend `gather`) with one tape and with
a batch. Before timing, every tape is compared with the known result, 13 ones. Peak memory is what one run adds, in MB.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import arguments, peak_memory, ratios, report, take_turns

from hf_mech.hub import Measurement, measurement
from hf_mech.programs.psl import PSM, compile_program, load_program, program_text
from hf_mech.programs.psl.machine import Run
from hf_mech.programs.psl.turing import TuringMachine, run_turing

BEAVER = TuringMachine.parse(
    "blank: 0\nA 0 -> B 1 R\nA 1 -> B 1 L\nB 0 -> A 1 L\nB 1 -> C 0 L\n"
    "C 0 -> H 1 R\nC 1 -> D 1 L\nD 0 -> D 1 R\nD 1 -> A 0 R"
)
ONES, STEPS = 13, 107
BLANKS = {"left": 14, "right": 6}
BATCH = 32
SIZES = {"max_position_embeddings": 64, "num_open_values": 16}
WAYS = {"compiled": BEAVER.to_psl(), "universal": program_text("universal")}


class Asked:
    """A runner that remembers its prompt."""

    def __init__(self, machine: PSM):
        self.machine = machine
        self.words, self.registers = list[str](), dict[str, Any]()

    def run(self, words: list[str], *, registers: dict[str, Any], max_new_tokens: int) -> Run:
        self.words, self.registers = words, registers
        return self.machine.run(words, registers=registers, max_new_tokens=max_new_tokens)


def asked(way: str) -> Asked:
    """The prompt and the symbolic machine of a way.

    Raises:
        AssertionError: the symbolic machine's result is not the known one.
    """
    runner = Asked(PSM(load_program(WAYS[way])))
    ended = run_turing(BEAVER, "0", **BLANKS, universal=way == "universal", runner=lambda _: runner)
    if (ended.symbols.count("1"), ended.steps, ended.state) != (ONES, STEPS, "H"):
        raise AssertionError(f"The PSM, {way}, ends with {ended.symbols} in {ended.state} after {ended.steps} steps.")
    return runner


class Network:
    """A way as a transformer, and its prompt `batch` times."""

    def __init__(self, way: str, batch: int):
        self.model, self.tokenizer = compile_program(WAYS[way], **SIZES)
        prompt = asked(way)
        texts, registers = [" ".join(prompt.words)] * batch, [prompt.registers] * batch
        self.batch = self.tokenizer(texts, registers=registers, return_tensors="pt")
        self.symbol = self.tokenizer.registers.index("symbol")
        self.check()

    def check(self) -> None:
        """Raises AssertionError: a tape of the batch has not the known number of ones."""
        one = self.tokenizer.convert_tokens_to_ids("1")
        found = (self.run().register_values[:, :-1, self.symbol] == one).sum(1)  # the end of the prompt is no cell
        if not bool((found == ONES).all()):
            raise AssertionError(f"The tapes of the DAT have {found.tolist()} ones, not {ONES}.")

    @torch.inference_mode()
    def run(self) -> Any:
        """One forward pass over the tapes."""
        return self.model.dat(**self.batch)


def memory(way: str, batch: int, *, warm_up: bool) -> None:
    """The work of the memory measurement."""
    torch.set_num_threads(1)
    Network(way, 1 if warm_up else batch).run()


def symbolic(prompt: Asked) -> None:
    prompt.machine.run(prompt.words, registers=prompt.registers, max_new_tokens=0)


def runs_of(runs: int) -> list[Measurement]:
    """Steps a second of every side, and how the ways and the machines compare."""
    sides: dict[str, Callable[[], object]] = {}
    for way in WAYS:
        sides[f"psm {way}"] = partial(symbolic, asked(way))
        for batch in (1, BATCH):
            sides[f"dat {way} {batch}"] = Network(way, batch).run
    seconds = take_turns(sides, runs)
    measured = []
    for way in WAYS:
        own = seconds[f"psm {way}"]
        measured.append(note({"table": way, "machine": "psm", "batch": 1}, "steps_per_second", per(own, 1)))
        for batch in (1, BATCH):
            setting = {"table": way, "machine": "dat", "batch": batch}
            measured.append(note(setting, "steps_per_second", per(seconds[f"dat {way} {batch}"], batch)))
            faster = [batch * ratio for ratio in ratios(seconds, f"psm {way}", f"dat {way} {batch}")]
            measured.append(note(setting, "times_faster_than_psm", faster))
    for side in ("psm {}", "dat {} 1", f"dat {{}} {BATCH}"):
        setting = {"machine": side.split()[0], "batch": BATCH if side.endswith(str(BATCH)) else 1}
        values = ratios(seconds, side.format("universal"), side.format("compiled"))
        measured.append(note(setting, "times_the_seconds_of_compiled", values))
    return measured


def compiling(runs: int) -> list[Measurement]:
    """Seconds to compile each program."""
    seconds = take_turns({way: partial(compile_program, text, **SIZES) for way, text in WAYS.items()}, runs)
    return [note({"table": way}, "seconds_to_compile", values) for way, values in seconds.items()]


def note(setting: dict[str, Any], metric: str, values: list[float]) -> Measurement:
    return measurement("dat_turing", "busy_beaver_4", setting, metric, values)


def per(seconds: list[float], batch: int) -> list[float]:
    return [STEPS * batch / second for second in seconds]


def main() -> None:
    args = arguments(__doc__, __file__, runs=5)
    began = time.perf_counter()
    torch.set_num_threads(1)
    measured = runs_of(args.runs) + compiling(args.runs)
    for way in WAYS:
        for batch in (1, BATCH):
            setting = {"table": way, "machine": "dat", "batch": batch}
            measured.append(note(setting, "peak_megabytes_added", [peak_memory(memory, way, batch)]))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
