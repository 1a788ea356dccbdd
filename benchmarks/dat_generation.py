"""PARGEN compiled into a DAT: prompts a second, memory, compile and load time, cost by length and productions.

    python benchmarks/dat_generation.py

Prompts of 1_shot_rlw go through the tokenizer, `generate()` and back to words, in batches of 200 prompts of similar
lengths, on one thread. Before timing, every completion is compared with the right one. For comparison: the same network
with one-hot vectors (backend `dense`) at a size that fits in memory, and the symbolic machines PSM and QKVM of the same
program, which take one prompt at a time. A Turing machine, the busy beaver of four states, is run compiled and from the
prompt of the universal program. Metrics with `cpu` in their names are in processor seconds, which depend little on
other work on the machine; the others are in wall-clock seconds.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from harness import arguments, peak_memory, peak_resident, ratios, report, take_turns
from transformers import AutoModelForCausalLM, AutoTokenizer

from hf_mech.hub import Measurement, measurement
from hf_mech.programs.psl.compile import compile_program, lower_program
from hf_mech.programs.psl.library import program_text, read_program
from hf_mech.programs.psl.machine import Machine
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.turing import TuringMachine, run_turing
from hf_mech.programs.templatic.grammar import generate

TASK, SPLIT = "1_shot_rlw", "test"
PROMPTS, BATCH = 2000, 200
SIZES = {"max_position_embeddings": 384, "num_open_values": 2000}
SMALL_PROMPTS, SMALL = 8, {"max_position_embeddings": 72, "num_open_values": 160}
SYMBOLIC_PROMPTS = 100
BATCHES = (1, 8, 32, SYMBOLIC_PROMPTS)
ALONE = (1, 4, 9, 20, 41, 83)
ALONE_SIZES = {"max_position_embeddings": 1024, "num_open_values": 2000}
LENGTHS = (1, 2, 4, 8, 12, 16, 24, 32, 40)
LENGTH_BATCH = 50
PRODUCTIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PRODUCTION_BATCH, PRODUCTION_CELLS = 50, 50

_REGISTERS = """\
registers: {symbol: 's', position: 'p', next: 'x'}
system: {symbol: symbol, position: position, output: next}
"""
KINDS = {
    "by position": "where position[n] == position[N]@pos_decrement:\n    next[N] = symbol[n]\n",
    "by symbol": "where symbol[n] == symbol[N] and position[n] != position[N]:\n    next[N] = position[n]\n",
}
"""Productions that name the cell they read, and productions that compare every pair of cells."""

Pairs = Sequence[tuple[str, str]]  # prompts and their completions


class Network:
    """A compiled program, and its completions of prompts."""

    def __init__(self, program: str, **sizes: Any):
        self.model, self.tokenizer = compile_program(program, **sizes)

    def say(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """The completions, up to the stop word."""
        batch = self.tokenizer(list(prompts), padding=True, return_tensors="pt")
        said = self.model.generate(**batch, max_new_tokens=max_new_tokens)[:, batch["input_ids"].shape[1] :]
        return self.tokenizer.batch_decode(said, skip_special_tokens=True)

    def complete(self, pairs: Pairs, batch_size: int) -> None:
        """Completes all prompts. Raises AssertionError if one is wrong: only right results are timed."""
        self.tokenizer.forget()
        for start in range(0, len(pairs), batch_size):
            batch = pairs[start : start + batch_size]
            right = [completion for _, completion in batch]
            longest = max(len(completion.split()) for completion in right)
            if self.say([prompt for prompt, _ in batch], longest + 8) != right:
                raise AssertionError(f"A completion of the prompts {start} to {start + len(batch)} is wrong.")


class Clocked:
    """A side that also records the processor seconds of each call."""

    def __init__(self, side: Callable[[], object]):
        self.side, self.cpu_seconds = side, list[float]()

    def __call__(self) -> None:
        began = time.process_time()
        self.side()
        self.cpu_seconds.append(time.process_time() - began)


def turns(sides: dict[str, Callable[[], object]], runs: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Wall seconds and processor seconds of every side, in turn."""
    clocked = {name: Clocked(side) for name, side in sides.items()}
    wall = take_turns(clocked, runs)
    return wall, {name: side.cpu_seconds[1:] for name, side in clocked.items()}  # the first one warms up


def prompts_of(count: int) -> Pairs:
    """The first prompts of the split, sorted by length so that a batch has little padding."""
    pairs = [(example.prompt, example.completion) for example in generate(TASK, SPLIT, 0, 0, count)]
    return sorted(pairs, key=lambda pair: len(pair[0].split()))


def prompts_of_length(length: int, count: int) -> Pairs:
    """Prompts that swap two constituents of `length` symbols: 6 length + 8 words."""
    pairs = []
    for number in range(count):
        x, y, u, w = (" ".join(f"{name}{i}" for i in range(length)) for name in "xyuw")
        delimiter = f"v{number % 10}"
        prompt = f"Q {x} {delimiter} {y} A {y} {delimiter} {x} . Q {u} {delimiter} {w} A"
        pairs.append((prompt, f"{w} {delimiter} {u} ."))
    return pairs


def generation(runs: int) -> list[Measurement]:
    """Prompts a second, and the speed-up over the vectors and over the symbolic machine."""
    network = Network(program_text("pargen"), **SIZES)
    pairs = prompts_of(PROMPTS)
    setting = {"task": TASK, "split": SPLIT, "batch": BATCH, "threads": 1}
    wall, cpu = turns({"gather": partial(network.complete, pairs, BATCH)}, runs)
    at = setting | {"backend": "gather", "prompts": PROMPTS}
    measured = [
        note(at, "prompts_per_second", per(wall["gather"], PROMPTS)),
        note(at, "prompts_per_cpu_second", per(cpu["gather"], PROMPTS)),
    ]

    few = prompts_of(SYMBOLIC_PROMPTS)
    machine = PSM(read_program("pargen"))

    def symbolic() -> None:
        for prompt, completion in few:
            if " ".join(machine.run(prompt).completion) != completion:
                raise AssertionError(f"The PSM is wrong on {prompt!r}.")

    sides = {f"gather {size}": partial(network.complete, few, size) for size in BATCHES}
    _, cpu = turns({"psm": symbolic, **sides}, runs)
    at = setting | {"prompts": SYMBOLIC_PROMPTS}
    measured.append(note(at | {"machine": "psm", "batch": 1}, "prompts_per_cpu_second", per(cpu["psm"], len(few))))
    for size in BATCHES:
        here, seconds = at | {"backend": "gather", "batch": size}, cpu[f"gather {size}"]
        measured.append(note(here, "prompts_per_cpu_second", per(seconds, len(few))))
        measured.append(note(here, "times_faster_than_psm", ratios(cpu, "psm", f"gather {size}")))

    small = {name: Network(program_text("pargen"), backend=name, **SMALL) for name in ("dense", "gather")}
    shortest = prompts_of(PROMPTS)[:: PROMPTS // SMALL_PROMPTS][:SMALL_PROMPTS]
    _, cpu = turns({name: partial(net.complete, shortest, SMALL_PROMPTS) for name, net in small.items()}, runs)
    at = setting | {"prompts": SMALL_PROMPTS, "batch": SMALL_PROMPTS, **SMALL}
    measured.append(note(at | {"backend": "dense"}, "prompts_per_cpu_second", per(cpu["dense"], SMALL_PROMPTS)))
    measured.append(note(at | {"backend": "gather"}, "times_faster_than_dense", ratios(cpu, "dense", "gather")))
    return measured


def memory(backend: str, *, warm_up: bool) -> None:
    """The work of the memory measurement: compiles PARGEN and completes 2,000 prompts, or one to warm up."""
    torch.set_num_threads(1)
    pairs = prompts_of(1 if warm_up else PROMPTS)
    Network(program_text("pargen"), backend=backend, **SIZES).complete(pairs, BATCH)


def compiling(runs: int) -> list[Measurement]:
    """Seconds to compile PARGEN and to load its checkpoint, and the checkpoint's size, at the default sizes."""
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = compile_program(program_text("pargen"))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        sizes = {path.name: path.stat().st_size / 1e6 for path in Path(folder).rglob("*") if path.is_file()}
        sides: dict[str, Callable[[], object]] = {
            "compile": lambda: compile_program(program_text("pargen")),
            "load": lambda: (AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)),
        }
        wall, cpu = turns(sides, runs)
        measured = []
        for side, metric in (("compile", "seconds_to_compile"), ("load", "seconds_to_load")):
            measured.append(note({"first": False}, metric, wall[side]))
            measured.append(note({"first": False}, f"cpu_{metric}", cpu[side]))
        context = multiprocessing.get_context("spawn")
        for side in ("compile", "load"):
            with context.Pool(1) as pool:
                seconds = pool.apply(first_time, (side, folder))
            for kind, figure in zip(("", "cpu_"), seconds, strict=True):
                measured.append(note({"first": True}, f"{kind}seconds_to_{side}", [figure]))
    measured.append(note({"files": "all"}, "checkpoint_megabytes", [sum(sizes.values())]))
    measured.append(note({"files": "model.safetensors"}, "checkpoint_megabytes", [sizes["model.safetensors"]]))
    return measured


def first_time(side: str, folder: str) -> tuple[float, float]:
    """Wall and processor seconds of compiling or loading in a process with only the necessary imports."""
    torch.set_num_threads(1)
    wall, cpu = time.perf_counter(), time.process_time()
    if side == "compile":
        compile_program(program_text("pargen"))
    else:
        AutoModelForCausalLM.from_pretrained(folder)
        AutoTokenizer.from_pretrained(folder)
    return time.perf_counter() - wall, time.process_time() - cpu


def against_length(runs: int) -> list[Measurement]:
    """Milliseconds a prompt by the length of the constituents, for PARGEN and for the program without repeat blocks."""
    measured = []
    networks = {name: Network(program_text(name), **SIZES) for name in ("pargen", "pargen_k_shot")}
    for length in LENGTHS:
        pairs = prompts_of_length(length, LENGTH_BATCH)
        _, cpu = turns({name: partial(net.complete, pairs, LENGTH_BATCH) for name, net in networks.items()}, runs)
        for name, seconds in cpu.items():
            setting = {"program": name, "constituent": length, "words": 6 * length + 8, "batch": LENGTH_BATCH}
            cost = [1e3 * second / LENGTH_BATCH for second in seconds]
            measured.append(note(setting, "cpu_milliseconds_per_prompt", cost))
    return measured


def prompt_alone(runs: int) -> list[Measurement]:
    """Milliseconds for one prompt with its completion, by its length, in the three machines; and the cache's size."""
    measured = []
    for name in ("pargen", "pargen_k_shot"):
        network, program = Network(program_text(name), **ALONE_SIZES), read_program(name)
        symbolic = {"psm": PSM(program), "qkvm": QKVM(lower_program(program, ALONE_SIZES["max_position_embeddings"]))}
        for length in ALONE:
            (pair,) = pairs = prompts_of_length(length, 1)
            sides: dict[str, Callable[[], object]] = {
                machine: partial(symbolic_completion, runner, pair) for machine, runner in symbolic.items()
            }
            _, cpu = turns(sides | {"gather": partial(network.complete, pairs, 1)}, runs)
            setting = {"program": name, "words": 6 * length + 8, "batch": 1}
            for machine, seconds in cpu.items():
                at = setting | {"machine": machine}
                measured.append(note(at, "cpu_milliseconds_per_prompt", [1e3 * second for second in seconds]))
            at = setting | {"machine": "gather"}
            measured.append(note(at, "times_faster_than_psm", ratios(cpu, "psm", "gather")))
            cache = read(network, network.tokenizer(pair[0], return_tensors="pt")).past_key_values
            measured.append(note(at, "megabytes_of_the_prompts_cache", [cache.memory() / 1e6]))
    return measured


def symbolic_completion(machine: Machine, pair: tuple[str, str]) -> None:
    """Completes a prompt. Raises AssertionError: the completion is wrong."""
    limit = ALONE_SIZES["max_position_embeddings"]
    if " ".join(machine.run(pair[0], max_new_tokens=limit, max_position_embeddings=limit).completion) != pair[1]:
        raise AssertionError(f"A symbolic machine is wrong on {pair[0]!r}.")


BUSY_BEAVER = """
blank: 0
A 0 -> B 1 R
A 1 -> B 1 L
B 0 -> A 1 L
B 1 -> C 0 L
C 0 -> H 1 R
C 1 -> D 1 L
D 0 -> D 1 R
D 1 -> A 0 R
"""
"""107 steps."""


def turing_machine(runs: int) -> list[Measurement]:
    """Seconds for the busy beaver of four states, with the program's compilation, in the three machines."""
    machine = TuringMachine.parse(BUSY_BEAVER)
    runners: dict[str, Callable[[Any], Any]] = {
        "psm": PSM,
        "qkvm": lambda program: QKVM(lower_program(program)),
        "gather": lambda program: DAT(*compile_program(program, max_position_embeddings=128, num_open_values=64)),
    }

    def halt(runner: Callable[[Any], Any], universal: bool) -> None:
        if run_turing(machine, "0", left=14, right=6, universal=universal, runner=runner).steps != 107:
            raise AssertionError("The Turing machine did not take 107 steps.")

    measured = []
    for name, runner in runners.items():
        sides = {kind: partial(halt, runner, kind == "universal") for kind in ("compiled", "universal")}
        _, cpu = turns(dict(sides), runs)
        for kind, seconds in cpu.items():
            measured.append(note({"machine": name, "turing_machine": kind, "steps": 107}, "cpu_seconds", seconds))
        overhead = ratios(cpu, "universal", "compiled")
        measured.append(note({"machine": name, "steps": 107}, "times_slower_in_the_prompt", overhead))
    return measured


def against_productions(runs: int) -> list[Measurement]:
    """Milliseconds to read a batch of prompts, by the number of copies of one production in the program."""
    words = [" ".join(f"w{(7 * row + i) % 40}" for i in range(PRODUCTION_CELLS)) for row in range(PRODUCTION_BATCH)]
    measured = []
    for kind, production in KINDS.items():
        for count in PRODUCTIONS:
            network = Network(_REGISTERS + count * production, max_position_embeddings=64, num_open_values=64)
            batch = network.tokenizer(words, return_tensors="pt")
            _, cpu = turns({kind: partial(read, network, batch)}, runs)
            setting = {"production": kind, "productions": count, "batch": PRODUCTION_BATCH, "words": PRODUCTION_CELLS}
            measured.append(note(setting, "cpu_milliseconds_per_batch", [1e3 * seconds for seconds in cpu[kind]]))
    return measured


@torch.inference_mode()
def read(network: Network, batch: Any) -> Any:
    """One forward pass over the prompts, including the logits of their ends."""
    return network.model(**batch, logits_to_keep=1)


def note(setting: dict[str, Any], metric: str, values: Sequence[float]) -> Measurement:
    return measurement("dat_generation", "cpu", setting, metric, values)


def per(seconds: Sequence[float], count: int) -> list[float]:
    return [count / second for second in seconds]


def draw(measured: Sequence[Measurement], file: Path) -> None:
    """The two panels: cost against length, and against the number of productions; medians, on logarithmic scales."""
    from matplotlib.figure import Figure

    from hf_mech.viz.palette import ACCENT, OURS, style

    figure = Figure(figsize=(8.6, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    programs = {"pargen": "PARGEN", "pargen_k_shot": "k-shot program, no repeat block"}
    kinds = {kind: f"cell found {kind}" for kind in KINDS}
    panels = (
        (left, "cpu_milliseconds_per_prompt", "program", "words", programs),
        (right, "cpu_milliseconds_per_batch", "production", "productions", kinds),
    )
    for axes, metric, line, along, labels in panels:
        for (name, label), colour in zip(labels.items(), (ACCENT, OURS), strict=True):
            entries = [
                entry
                for entry in measured
                if entry.metric == metric and entry.setting[line] == name and entry.setting["batch"] > 1
            ]
            across = [entry.setting[along] for entry in entries]
            costs = [statistics.median(entry.values) for entry in entries]
            axes.plot(across, costs, color=colour, marker="o", ms=3.5, linewidth=1.5, label=label)
        axes.legend(loc="upper left", frameon=False, fontsize=8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(across, [str(number) for number in across])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:g}")
        style(axes, grid="both")
    left.set_title("Cost against the prompt's length", size=9.5, weight="bold", loc="left")
    left.set_xlabel(f"words of the prompt (batches of {LENGTH_BATCH}, completion included)", size=8)
    left.set_ylabel("processor time per prompt, ms", size=8)
    right.set_title("Cost against the number of productions", size=9.5, weight="bold", loc="left")
    right.set_xlabel(f"productions ({PRODUCTION_BATCH} prompts of {PRODUCTION_CELLS} words)", size=8)
    right.set_ylabel("processor time per batch, ms", size=8)
    figure.savefig(file, dpi=150)


def main() -> None:
    args = arguments(__doc__, __file__, runs=5)
    began = time.perf_counter()
    torch.set_num_threads(1)
    measured = generation(args.runs)
    at = {"task": TASK, "split": SPLIT, "prompts": PROMPTS, "batch": BATCH, "backend": "gather"}
    measured.append(note(at, "peak_megabytes_of_the_process", [peak_resident(memory, "gather")]))
    measured.append(note(at, "peak_megabytes_added", [peak_memory(memory, "gather")]))
    measured += compiling(args.runs) + against_length(args.runs) + against_productions(args.runs)
    measured += prompt_alone(args.runs) + turing_machine(args.runs)
    report(args.output, measured, began)
    draw(measured, args.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
