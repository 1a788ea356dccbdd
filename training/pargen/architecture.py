"""The options of the DAT, compared with the paper's machine: embeddings (69), App. L, and heads (90a).

Every register of every cell after every layer, of the prompt and the completion, is compared with that of the symbolic
machine; with heads, wherever a run of productions ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.models.dat.configuration_dat import DATConfig
from hf_mech.models.dat.dat_embedding import MARGIN, narrowest, weakest_match
from hf_mech.programs.psl.compile import compile_program, lower_program, merge_heads
from hf_mech.programs.psl.library import program_names, read_program
from hf_mech.programs.psl.machine import Run, Step
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.qkvl import QKVLBlock, QKVLProgram, QKVLRepeat
from hf_mech.programs.psl.turing import TuringMachine, run_turing
from hf_mech.programs.templatic.grammar import generate

from ..engine.tables import Table

FILE = "dat-pargen/architecture.json"
SIZES: dict[str, Any] = {"max_position_embeddings": 96, "num_open_values": 200}
TASKS = {"pargen": "1_shot_rlw", "pargen_k_shot": "2_shot_rlw", "universal": None}
INCREMENT = TuringMachine.parse("""
right 0 -> right 0 R
right 1 -> right 1 R
right _ -> carry _ L
carry 1 -> carry 0 L
carry 0 -> done 1 L
carry _ -> done 1 L
""")

Machine = PSM | DAT


def measure(prompts: int, report: Callable[[str], None]) -> list[Measurement]:
    """All figures: of the first prompts of each program's task, or for `universal` of binary numbers to increment."""
    found: list[Measurement] = []
    for name in program_names():
        lowered = lower_program(read_program(name), SIZES["max_position_embeddings"])
        expected = list(_runs(name, PSM(read_program(name)), prompts))
        forms: list[tuple[str, int | None]] = [("local", None), ("semi_local", None), ("distributed", None)]
        for form, dim in [*forms, ("distributed", _least(lowered, **SIZES))]:
            options: dict[str, Any] = {"embedding": form, "filler_dim": dim}
            model, tokenizer = compile_program(lowered, backend="dense", **SIZES, **options)
            began = time.perf_counter()
            runs = list(_runs(name, DAT(model, tokenizer), prompts))
            seconds = time.perf_counter() - began
            usual = DATConfig(qkvl=lowered.to_json(), **options | {"filler_dim": dim and _least(lowered)})
            setting = {"program": name, **options, "prompts": prompts, "values": model.config.vocab_size}
            setting |= {"dimensions": model.config.hidden_size, "dimensions_by_default": usual.hidden_size}
            equal = [
                pair for one, other in zip(expected, runs, strict=True) for pair in _values(one.trace, other.trace)
            ]
            found += _measured(TASKS[name], setting, equal, seconds)
            report(f"{name}, {form}, {dim or 'as many dimensions as values'}: {sum(equal):,} of {len(equal):,} values")
        merged = merge_heads(lowered)
        model, tokenizer = compile_program(lowered, backend="dense", heads=True, **SIZES)
        began = time.perf_counter()
        runs = list(_runs(name, DAT(model, tokenizer), prompts))
        seconds = time.perf_counter() - began
        setting = {"program": name, "prompts": prompts, "heads": model.config.num_attention_heads}
        setting |= {"productions": len(list(lowered.layers)), "layers": model.config.num_hidden_layers}
        ends = [_at_ends(run, lowered) for run in expected], [_at_ends(run, merged) for run in runs]
        equal = [pair for one, other in zip(*ends, strict=True) for pair in _values(one, other)]
        found += _measured(TASKS[name], setting, equal, seconds)
        report(
            f"{name}, {setting['layers']} layers of up to {setting['heads']} heads: {sum(equal):,} of {len(equal):,}"
        )
    return found


def _measured(
    task: str | None, setting: dict[str, Any], equal: list[bool], seconds: float
) -> tuple[Measurement, Measurement]:
    dataset = "hf_mech/templatic_generation" if task else "binary numbers"
    setting = {**setting, "compared": len(equal)}
    return (
        measurement(dataset, task, setting, "equal_register_values", [sum(equal) / len(equal)]),
        measurement(dataset, task, setting, "seconds", [seconds]),
    )


def _least(program: QKVLProgram, **sizes: int) -> int:
    """The smallest `filler_dim` for the program."""
    config = DATConfig(qkvl=program.to_json(), **sizes)
    return narrowest(config.vocab_size, MARGIN / weakest_match(config.program))


def _runs(name: str, machine: Machine, prompts: int) -> Iterator[Run]:
    task = TASKS[name]
    if task is None:
        for number in range(1, prompts + 1):
            bits = " ".join(f"{number:b}")
            yield run_turing(INCREMENT, bits, left=2, right=2, universal=True, runner=lambda program: machine).run
        return
    for example in generate(task, "test", 0, 0, prompts):
        yield machine.run(example.prompt, max_new_tokens=SIZES["max_position_embeddings"] - len(example.prompt.split()))


def _values(one: list[list[Step]], other: list[list[Step]]) -> Iterator[bool]:
    """For every register of every cell after every layer, whether both runs have the same value."""
    for group, others in zip(one, other, strict=True):
        for step, found in zip(group, others, strict=True):
            assert step.path.repetitions == found.path.repetitions
            for cell, state in zip(step.cells, found.cells, strict=True):
                yield from (state[name] == value for name, value in cell.items())


def _at_ends(run: Run, program: QKVLProgram) -> list[list[Step]]:
    """The steps before the first layer, and after the last production before each repeat block and end of a body."""
    ends = {0, *_ends(program.weights, 0)}
    return [[step for step in group if step.path.production in ends] for group in run.trace]


def _ends(blocks: tuple[QKVLBlock, ...], layer: int) -> Iterator[int]:
    for place, block in enumerate(blocks, start=1):
        if isinstance(block, QKVLRepeat):
            inner = list(_ends(block.weights, layer))
            yield from inner
            layer = max(inner, default=layer)
        else:
            layer += 1
            if place == len(blocks) or isinstance(blocks[place], QKVLRepeat):
                yield layer


def tables(cards: Path) -> dict[str, str]:
    """The tables of embeddings and of heads; empty without a run."""
    found = Results.load(cards / FILE).results if (cards / FILE).is_file() else []
    seconds = {_key(entry): entry.mean for entry in found if entry.metric == "seconds"}
    embeddings = Table(
        [
            "program",
            "embedding",
            ">dimensions of a value",
            ">of a state",
            ">by default",
            ">compared",
            ">equal",
            ">seconds",
        ]
    )
    heads = Table(["program", ">productions", ">layers", ">most heads", ">compared", ">equal", ">seconds"])
    for entry in found:
        if entry.metric == "seconds":
            continue
        setting = entry.setting
        compared = setting["compared"]
        shown = [f"{compared:,}", f"{round(compared * entry.mean):,}", f"{seconds[_key(entry)]:.1f}"]
        if "heads" in setting:
            sizes = [str(setting[name]) for name in ("productions", "layers", "heads")]
            heads.rows.append([setting["program"], *sizes, *shown])
        else:
            width = setting["filler_dim"] or setting["values"]
            sizes = [f"{width:,}", f"{setting['dimensions']:,}", f"{setting['dimensions_by_default']:,}"]
            embeddings.rows.append([setting["program"], setting["embedding"], *sizes, *shown])
    named = {"embeddings": embeddings, "heads": heads}
    return {name: table.markdown() if table.rows else "" for name, table in named.items()}


def _key(entry: Measurement) -> str:
    return repr(entry.setting)
