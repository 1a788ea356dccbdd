"""The data of a run: read back from its JSON, it is what the symbolic machine does, cell by cell and layer by layer."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor

from hf_mech.models.dat import DATError
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.explorer_view import VIEW, read_settings
from hf_mech.programs.psl import PSM, compile_program, load_program, program_text
from hf_mech.programs.psl.machine import Block, Layer, Run, _Execution
from hf_mech.programs.psl.network import RunRecorder
from hf_mech.programs.psl.program_run import ProgramRun
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import LIMIT, programs, prompts

SWAP = "Q B V D E A D E V B . Q F G H V K L A"
Reads = list[dict[int, int]]


class Watched(PSM):
    """The symbolic machine, with the cells that were read in every layer that ran, in order."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.reads: Reads = []
        self.rules: set[int] = set()
        self._collect(self.block)

    def _collect(self, block: Block) -> None:
        for statement in block:
            if isinstance(statement, Layer):
                self.rules.add(id(statement.rule))
            else:
                self._collect(statement.body)

    def run(self, *args: Any, **kwargs: Any) -> Run:
        matches_of = _Execution._matches

        def watched(execution: _Execution, rule: Any, cells: Any, place: Any, head: int = 0) -> list[Any]:
            matches = matches_of(execution, rule, cells, place, head)
            if id(rule) in self.rules:  # not the condition of a block
                position = self.system["position"]
                self.reads.append({i: int(n[position]) - 1 for i, n in enumerate(matches) if n is not None})
            return matches

        with mock.patch.object(_Execution, "_matches", watched):
            return super().run(*args, **kwargs)


def read_back(json_of_run: dict[str, Any]) -> tuple[list[Any], Reads]:
    """The states as in `Run.trace`, with plain tuples, and the reads in the order of the run."""
    names = [register["name"] for register in json_of_run["registers"]]
    values, rows = json_of_run["values"], json_of_run["rows"]
    trace, reads = [], []
    for group in json_of_run["groups"]:
        cells = [list(cell) for cell in group["first"]]

        def states(cells: list[list[int]] = cells) -> list[dict[str, str | None]]:
            return [{name: values[i] for name, i in zip(names, cell, strict=True)} for cell in cells]

        steps: list[Any] = [((0, ()), states())]
        for step in group["steps"]:
            for cell, register, value in step["changes"]:
                assert cells[cell][register] != value, "a change that changes nothing"
                cells[cell][register] = value
            row = rows[step["row"]]
            steps.append(((row["layer"], tuple(row["repetitions"])), states()))
            reads.append({int(cell): n for cell, n in step["reads"].items()})
        trace.append(steps)
    return trace, reads


def check(program: Program, prompt: list[str], most: int, limit: int, **registers: Any) -> ProgramRun | None:
    machine = Watched(program)
    try:
        run = machine.run(prompt, max_new_tokens=most, max_position_embeddings=limit, **registers)
    except ProgramsError:
        return None
    model, tokenizer = compile_program(program, max_position_embeddings=limit, num_open_values=24)
    made = RunRecorder(model, tokenizer, program).run(" ".join(prompt), most, **registers)
    data = json.loads(made.dumps())
    trace, reads = read_back(data)
    assert made.completion == run.completion
    assert trace == [
        [((step.path.production, step.path.repetitions), [dict(cell) for cell in step.cells]) for step in steps]
        for steps in run.trace
    ]
    assert reads == machine.reads
    for steps in trace:  # the rows are in the order of each group's own run
        order = [data["rows"].index({"layer": p, "repetitions": list(r)}) for (p, r), _ in steps[1:]]
        assert order == sorted(order)
    return made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(), prompts())
def test_any_run_is_the_symbolic_machines(program: Program, prompt: list[str]) -> None:
    check(program, prompt, 3, LIMIT)


def test_the_run_of_pargen_with_its_text_and_sizes() -> None:
    program = load_program(program_text("pargen"))
    run = check(program, SWAP.split(), 20, 40)
    assert run is not None
    assert run.ended
    assert " ".join(run.completion) == "K L V F G H ."
    # The watched registers come first, in the program's order.
    assert [r.name for r in run.registers][:6] == ["region", "field", "symbol", "position", "type", "index"]
    assert [r.watched for r in run.registers].count(True) == 6
    lines = program.source.split("\n")
    for layer in run.layers:
        assert [line.strip() for line in layer.text.split("\n")] == [
            line.strip() for line in lines[layer.line - 1 : layer.line - 1 + len(layer.text.split("\n"))]
        ]
        assert layer.text.startswith("where ")
        assert "[N] =" in layer.text.split("\n")[-1]
    assert len(run.layers) == run.sizes["layers"] == 31
    # An even share of the paper's point: what was read is what P5b's comment says (the Q and the V of the example).
    p5b = [step for step in run.groups[0].steps if run.layers[step.row.layer - 1].comment.startswith("P5b")]
    assert [{N: n for N, n in enumerate(step.reads) if n is not None} for step in p5b] == [{11: 0, 15: 2}]


def test_a_bound_cuts_the_run_before_the_last_words_cell() -> None:
    run = check(load_program(program_text("pargen")), SWAP.split(), 2, 40)
    assert run is not None
    assert (run.ended, run.completion, len(run.groups)) == (False, ["K", "L"], 2)


def test_the_registers_of_a_prompt_and_no_generation() -> None:
    example = VIEW.example("universal")
    registers, most = read_settings(example.settings)
    assert most == 0
    run = check(load_program(program_text("universal")), example.text.split(), most, 20, registers=registers)
    assert run is not None
    assert " ".join(str(cell["symbol"]) for cell in run.groups[0].steps[-1].cells[6:]) == "_ 1 1 0 0 _"
    assert (run.completion, len(run.groups)) == ([], 1)


@pytest.mark.parametrize("source", VIEW.sources)
def test_every_program_of_the_package_has_an_example_that_runs(source: str) -> None:
    example = VIEW.example(source)
    registers, most = read_settings(example.settings)
    run = VIEW.recorder(source, program_text(source)).run(example.text, most, registers=registers)
    assert run.ended or example.settings.endswith(f"max_new_tokens: {most}")
    assert run.completion or most == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("head 1 0", "line 1 .*head 1 0"),
        ("head: 1\nhead: 0", "line 2 "),
        ("max_new_tokens: many", "one number"),
        (": 1", "line 1 "),
    ],
)
def test_settings_of_another_form_are_refused(settings: str, said: str) -> None:
    with pytest.raises(ProgramsError, match=said):
        read_settings(settings)


# ------------------------------------------------------------------------------------------------------------- weights


WEIGHTS = """
registers: {symbol: 's', position: 'p', before: 'b', other: 'o'}
constants: {A, B}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement and symbol[N] != A:
    before[N] = symbol[n]
    other[N] = B
where before[n] != symbol[N] and symbol[n] in [A, B] and other[N] not in [A]:
    symbol[N] = before[n]
"""


def test_the_blocks_of_the_page_are_the_matrices_of_the_model() -> None:
    """Built again from `a F + b J`, every matrix and bias of every layer is that of `to_dense`."""
    program = load_program(WEIGHTS)
    model, tokenizer = compile_program(program, max_position_embeddings=5, num_open_values=3)
    recorder = RunRecorder(model, tokenizer, program)
    size = model.config.vocab_size
    shorts = list(model.dat.program.registers)
    for layer in recorder.layers:
        dense = model.dat.to_dense(layer.number - 1)
        for attribute in ("query", "key", "value"):
            matrix, bias = dense[attribute]
            blocks = [block for block in layer.blocks if block.attribute == attribute]
            targets = shorts if attribute == "value" else [block.target for block in blocks]
            made, shift = torch.zeros_like(matrix), torch.zeros_like(bias)
            for block in blocks:
                columns = slice(targets.index(block.target) * size, (targets.index(block.target) + 1) * size)
                if block.source is None:
                    neurons = torch.zeros(size)
                    neurons[tokenizer.convert_tokens_to_ids(block.matrix.split(", "))] = 1
                    shift[columns] = block.scale * neurons + block.shift
                else:
                    rows = slice(shorts.index(block.source) * size, (shorts.index(block.source) + 1) * size)
                    made[rows, columns] = block.scale * function_matrix(block.matrix, size) + block.shift
            assert torch.equal(made, matrix), (layer.number, attribute)
            assert torch.equal(shift, bias), (layer.number, attribute)


def function_matrix(name: str, size: int) -> Tensor:
    if name == "I":
        return torch.eye(size)
    assert name == "pos_decrement"
    matrix = torch.zeros(size, size)
    for number in range(1, 6):  # the numbers 0 to 5 have the indices 2 to 7
        matrix[number + 2, number + 1] = 1
    return matrix


def test_reads_are_of_one_row() -> None:
    model, tokenizer = compile_program(program_text("pargen"), max_position_embeddings=24, num_open_values=12)
    batch = tokenizer(["Q a A a . Q b A", "Q a A a . Q c A"], padding=True, return_tensors="pt")
    with pytest.raises(DATError, match="one row, got 2"):
        model.dat.trace(**batch, reads=True)
    assert model.dat.trace(**batch)[0][1].reads is None
