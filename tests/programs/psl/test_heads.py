"""Productions as heads of common layers, (90a): the same states wherever a run of productions ends, in all machines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, event, given, settings

from hf_mech.models.dat import DATError, DATForCausalLM
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import compile_program, load_program
from hf_mech.programs.psl import machine as symbolic
from hf_mech.programs.psl.compile import lower_program, merge_heads
from hf_mech.programs.psl.library import read_program
from hf_mech.programs.psl.machine import Run, Step
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.qkvl import QKVLHeads, QKVLProduction, QKVLProgram, QKVLRepeat
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.turing import TuringMachine, run_turing
from tests.programs.psl.random_programs import LIMIT, outcome, programs, prompts
from tests.programs.psl.test_three_machines import network_outcome
from tests.programs.templatic.paper_prompts import BOX_2, SWAP

HEAD = """
registers: {symbol: 's', position: 'p', x: 'x', y: 'y', z: 'z'}
system: {symbol: symbol, position: position, output: symbol}
constants: {A, B, C}
"""


def layers_of(text: str) -> list[list[int]]:
    """The productions of every layer, by their numbers in the text."""
    program = lower_program(load_program(HEAD + text))
    numbers = {id(production): i for i, production in enumerate(program.productions)}
    return [
        [numbers[id(head)] for head in (layer.heads if isinstance(layer, QKVLHeads) else (layer,))]
        for layer in merge_heads(program).layers
    ]


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        # nothing in common
        ("where symbol[N] == A:\n    x[N] = B\nwhere symbol[N] == A:\n    y[N] = B\n", [[0, 1]]),
        # the second one tests what the first one assigns, and copies it
        ("where symbol[N] == A:\n    x[N] = B\nwhere x[n] == B:\n    y[N] = B\n", [[0], [1]]),
        ("where symbol[N] == A:\n    x[N] = B\nwhere symbol[n] == A:\n    y[N] = x[n]\n", [[0], [1]]),
        # the second one assigns what the first one reads: both read the layer's input
        ("where x[n] == symbol[N]:\n    y[N] = B\nwhere symbol[N] == A:\n    x[N] = B\n", [[0, 1]]),
        ("where symbol[n] == A:\n    y[N] = x[n]\nwhere symbol[n] == A:\n    x[N] = symbol[n]\n", [[0, 1]]),
        # both assign the same register: in one layer if no cell passes both tests
        ("where symbol[N] == A:\n    x[N] = B\nwhere symbol[N] == A:\n    x[N] = C\n", [[0], [1]]),
        ("where symbol[N] == A:\n    x[N] = B\nwhere symbol[N] == B:\n    x[N] = C\n", [[0, 1]]),
        ("where symbol[N] in [A, B]:\n    x[N] = B\nwhere symbol[N] in [B, C]:\n    x[N] = C\n", [[0], [1]]),
        ("where symbol[N] in [A, B]:\n    x[N] = B\nwhere symbol[N] not in [B, A, C]:\n    x[N] = C\n", [[0, 1]]),
        ("where symbol[N] != A:\n    x[N] = B\nwhere symbol[N] == A:\n    x[N] = C\n", [[0, 1]]),
        ("where symbol[N] != A:\n    x[N] = B\nwhere symbol[N] != B:\n    x[N] = C\n", [[0], [1]]),
        # the tests of n say nothing of N, and those of another register neither
        ("where symbol[n] == A:\n    x[N] = B\nwhere symbol[n] == B:\n    x[N] = C\n", [[0], [1]]),
        ("where symbol[N] == A:\n    x[N] = B\nwhere y[N] == B:\n    x[N] = C\n", [[0], [1]]),
        # the register that keeps them apart changes between them
        (
            "where y[N] == A:\n    x[N] = A\nwhere y[N] == A:\n    y[N] = B\nwhere y[N] == B:\n    x[N] = B\n",
            [[0, 1], [2]],
        ),
        # a later one overtakes
        (
            "where symbol[N] == A:\n    x[N] = B\nwhere x[N] == B:\n    y[N] = B\n"
            "where symbol[N] == B:\n    z[N] = C\n",
            [[0, 2], [1]],
        ),
        # what one reads is assigned in a later layer, not in an earlier one
        (
            "where symbol[N] == A:\n    x[N] = B\nwhere x[n] == z[N]:\n    y[N] = B\n"
            "where symbol[N] == B:\n    z[N] = C\n",
            [[0], [1, 2]],
        ),
        # a repeat block is a barrier
        (
            "where symbol[N] == A:\n    x[N] = B\nrepeat:\n    where symbol[N] == A:\n        y[N] = B\n"
            "    where symbol[N] == A:\n        z[N] = B\nuntil NO_CHANGE\nwhere symbol[N] == C:\n    x[N] = C\n",
            [[0], [1, 2], [3]],
        ),
    ],
)
def test_what_may_share_a_layer(text: str, layers: list[list[int]]) -> None:
    assert layers_of(text) == layers


# ---------------------------------------------------------------------------------------------------- the same states


Ends = list[tuple[Any, ...]]


def ends_of_runs(blocks: tuple[Any, ...], layer: int = 0) -> Iterator[int]:
    """The numbers, from 1, of the layers after which a repeat block or the end of a body comes."""
    for i, block in enumerate(blocks):
        if isinstance(block, QKVLRepeat):
            yield from ends_of_runs(block.weights, layer)
            layer += sum(1 for _ in QKVLProgram({}, {}, {}, (block,)).layers)
        else:
            layer += 1
            if i + 1 == len(blocks) or isinstance(blocks[i + 1], QKVLRepeat):
                yield layer


def states_at_ends(run: Run, program: QKVLProgram) -> list[list[tuple[Any, ...]]]:
    """For every group of cells its repetitions and states before the first layer and wherever a run ends."""
    ends = {0, *ends_of_runs(program.weights)}

    def kept(step: Step) -> bool:
        return step.path.production in ends

    return [
        [(step.path.repetitions, [dict(cell) for cell in step.cells]) for step in group if kept(step)]
        for group in run.trace
    ]


def assert_same_ends(plain: Run | str, program: QKVLProgram, other: Run | str, merged: QKVLProgram) -> None:
    if not (isinstance(plain, Run) and isinstance(other, Run)):
        assert plain == other, f"one ended in {plain}, the other in {other}"
        return
    assert plain.completion == other.completion
    assert states_at_ends(plain, program) == states_at_ends(other, merged)


def grouped(psm: PSM, merged: QKVLProgram, numbers: dict[int, int]) -> PSM:
    """A PSM whose productions are in the layers of a merged program."""
    rules = {layer.production: layer.rule for layer in _layers(psm.block)}
    count = iter(range(1, len(rules) + 1))
    loops = _loops(psm.block)

    def block(blocks: tuple[Any, ...]) -> tuple[Any, ...]:
        made: list[Any] = []
        for one in blocks:
            if isinstance(one, QKVLRepeat):
                loop = next(loops)
                made.append(symbolic.Loop(block(one.weights), loop.until, loop.bound, loop.line))
            else:
                heads = one.heads if isinstance(one, QKVLHeads) else (one,)
                made.append(symbolic.Heads(next(count), tuple(rules[numbers[id(head)]] for head in heads)))
        return tuple(made)

    psm.block = block(merged.weights)
    return psm


def _layers(block: symbolic.Block) -> Iterator[symbolic.Layer]:
    for statement in block:
        if isinstance(statement, symbolic.Loop):
            yield from _layers(statement.body)
        elif isinstance(statement, symbolic.Layer):
            yield statement


def _loops(block: symbolic.Block) -> Iterator[symbolic.Loop]:
    for statement in block:
        if isinstance(statement, symbolic.Loop):
            yield statement
            yield from _loops(statement.body)


def check(program: Program, prompt: list[str], embedding: str = "local") -> None:
    lowered = lower_program(program, LIMIT)
    merged = merge_heads(lowered)
    plain = outcome(PSM(program), prompt)
    numbers = {id(production): i for i, production in enumerate(lowered.productions, start=1)}
    assert_same_ends(plain, lowered, outcome(grouped(PSM(program), merged, numbers), prompt), merged)
    assert_same_ends(plain, lowered, outcome(QKVM(merged), prompt), merged)
    assert QKVLProgram.from_json(merged.to_json()) == merged
    options: dict[str, Any] = {"max_position_embeddings": LIMIT, "num_open_values": 4, "embedding": embedding}
    model, tokenizer = compile_program(lowered, heads=True, **options)
    assert model.config.num_hidden_layers == len(list(merged.layers))
    for backend in ("gather", "dense"):
        model.config.backend = backend
        assert_same_ends(plain, lowered, network_outcome(DAT(model, tokenizer), prompt), merged)
    saved = len(list(lowered.layers)) - len(list(merged.layers))
    event(f"{min(saved, 3)} layers fewer" if isinstance(plain, Run) else plain.partition(" ")[0])


RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(RELAXED, max_examples=20)
@given(programs(), prompts())
def test_random_programs(program: Program, prompt: list[str]) -> None:
    check(program, prompt)


@settings(RELAXED, max_examples=5)
@given(programs(), prompts())
def test_random_programs_in_distributed_states(program: Program, prompt: list[str]) -> None:
    check(program, prompt, "distributed")


@pytest.mark.slow
@settings(RELAXED, max_examples=2_000)
@given(programs(), prompts())
def test_many_random_programs(program: Program, prompt: list[str]) -> None:
    """Other ones in every run."""
    check(program, prompt)


@pytest.mark.parametrize("name", ["pargen", "pargen_k_shot"])
def test_programs_of_the_package(name: str) -> None:
    program = read_program(name)
    lowered = lower_program(program)
    merged = merge_heads(lowered)
    model, tokenizer = compile_program(program, heads=True)
    for prompt, completion in [*list(BOX_2.values())[:3], SWAP]:
        plain = PSM(program).run(prompt)
        assert plain.completion == completion.split()
        assert_same_ends(plain, lowered, QKVM(merged).run(prompt), merged)
        assert_same_ends(plain, lowered, DAT(model, tokenizer).run(prompt), merged)


INCREMENT = TuringMachine.parse("r 0 -> r 0 R\nr 1 -> r 1 R\nr _ -> c _ L\nc 1 -> c 0 L\nc 0 -> d 1 L\nc _ -> d 1 L\n")


@pytest.mark.parametrize("universal", [False, True])
def test_turing_machines(universal: bool) -> None:
    """Steps of a repeat block, from registers that the prompt sets."""
    plain = run_turing(INCREMENT, "1 0 1 1", universal=universal)
    for backend in ("gather", "dense"):
        options: dict[str, Any] = {"max_position_embeddings": 50, "num_open_values": 20, "backend": backend}

        def network(program: Program, options: dict[str, Any] = options) -> DAT:
            return DAT(*compile_program(program, heads=True, **options))

        ended = run_turing(INCREMENT, "1 0 1 1", universal=universal, runner=network)
        assert (ended.symbols, ended.state, ended.steps) == (plain.symbols, plain.state, plain.steps)
        assert ended.written == ["1", "1", "0", "0"]


@pytest.mark.parametrize(
    ("name", "layers", "least"), [("pargen", 31, 28), ("pargen_k_shot", 30, 26), ("universal", 5, 5)]
)
def test_how_many_layers_a_program_needs(name: str, layers: int, least: int) -> None:
    lowered = lower_program(read_program(name))
    assert (len(list(lowered.layers)), len(list(merge_heads(lowered).layers))) == (layers, least)
    assert sorted(map(repr, merge_heads(lowered).productions)) == sorted(map(repr, lowered.productions))


# ------------------------------------------------------------------------------------------------------- the model


@pytest.fixture(scope="module")
def small() -> tuple[DATForCausalLM, Any]:
    return compile_program(read_program("pargen"), heads=True, max_position_embeddings=24, num_open_values=12)


TEXTS = ["Q a b A b . Q c b A", "Q a x b A b x a Q c d x e A"]


@pytest.mark.parametrize("backend", ["gather", "dense", "relaxed"])
def test_attentions_have_a_row_for_every_head(small: tuple[DATForCausalLM, Any], backend: str) -> None:
    """[batch, heads, length, length]; each head reads what its production reads when it is a layer of its own."""
    model, tokenizer = small
    model.config.backend, model.config.relaxation_temperature = backend, 0.0
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    plain, _ = compile_program(read_program("pargen"), max_position_embeddings=24, num_open_values=12)
    found, expected = (one(**batch, output_attentions=True, output_hidden_states=True) for one in (model, plain))
    heads = [len(layer.heads) for layer in model.dat.program.layers]
    assert [attention.shape[1] for attention in found.attentions] == heads
    assert model.config.num_attention_heads == max(heads) == 2
    assert len(found.hidden_states) == model.config.num_hidden_layers + 1 == 29
    rows = list(chain.from_iterable(attention.unbind(1) for attention in found.attentions))
    by_comment = {production.comment: row for production, row in zip(model.dat.program.productions, rows, strict=True)}
    for layer, attention in zip(plain.dat.program.productions, expected.attentions, strict=True):
        assert torch.equal(by_comment[layer.comment], attention[:, 0]), layer.comment
    assert torch.equal(found.hidden_states[-1], expected.hidden_states[-1])
    padding = model.dat(torch.zeros(2, 3, dtype=torch.long), past_key_values=model(**batch).past_key_values)
    assert not padding.last_hidden_state.any()


def test_generation_save_and_load(small: tuple[DATForCausalLM, Any], tmp_path: Any) -> None:
    model, tokenizer = small
    model.config.backend = "gather"
    model.save_pretrained(tmp_path)
    loaded = DATForCausalLM.from_pretrained(tmp_path)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    options: dict[str, Any] = {"max_new_tokens": 6, "return_dict_in_generate": True, "output_attentions": True}
    made = model.generate(**batch, **options)
    plain, _ = compile_program(read_program("pargen"), max_position_embeddings=24, num_open_values=12)
    assert torch.equal(made.sequences, plain.generate(**batch, max_new_tokens=6))
    assert torch.equal(made.sequences, loaded.generate(**batch, max_new_tokens=6, use_cache=False))
    assert made.attentions[1][-1].shape[1:3] == (1, 1)
    matrix, bias = model.dat.to_dense(model.dat.program.layers.index(model.dat.program.layers[-1]))["query"]
    assert matrix.shape == (model.config.hidden_size, len(bias))


def test_every_head_has_gradients(small: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = small
    model.config.backend, model.config.relaxation_temperature = "relaxed", 1.0
    batch = tokenizer(TEXTS[0], "b .", return_tensors="pt")
    model(**batch, labels=batch["input_ids"]).loss.backward()
    layer = next(i for i, layer in enumerate(model.dat.program.layers) if len(layer.heads) == 2)
    assert all(head.query.weight.grad.abs().sum() > 0 for head in model.dat.layers[layer].heads)
    model.zero_grad()


# -------------------------------------------------------------------------------------------------------- refusals


def qkvl(*heads: QKVLProduction) -> QKVLProgram:
    names = {"symbol": "s", "position": "p", "x": "x"}
    system = {"symbol": "symbol", "position": "position", "output": "x"}
    return QKVLProgram(names, {}, system, (QKVLHeads(heads, "both"),))


def test_heads_that_conflict_are_refused() -> None:
    one, other = (QKVLProduction(q={"s": "s"}, k={"s": "s"}, v={"x": constant}) for constant in "AB")
    with pytest.raises(DATError, match="both write x"):
        compile_program(qkvl(one, other))
    apart = [QKVLProduction(q={"s": "s", "p": "p"}, k={"s": c, "p": "p"}, v={"x": c}) for c in "AB"]
    model, tokenizer = compile_program(qkvl(*apart), max_position_embeddings=5, num_open_values=4)
    prompt = tokenizer("A B C", return_tensors="pt")
    for backend in ("gather", "dense"):
        model.config.backend = backend
        said = model(**prompt).logits[0, :3].argmax(-1)
        assert tokenizer.convert_ids_to_tokens(said)[:2] == ["A", "B"]
        assert said[2] == 0


def test_json_that_is_refused() -> None:
    program = qkvl(QKVLProduction(q={"s": "s"}, k={"s": "s"}, v={"x": "A"}))
    json = program.to_json()
    assert QKVLProgram.from_json(json) == program
    with pytest.raises(ProgramsError, match="heads already"):
        merge_heads(program)
    for heads, says in (([], "expected a list"), ("s", "expected a list"), ([{"q": {}}], r"heads\[0\]")):
        json["weights"][0]["heads"] = heads
        with pytest.raises(ProgramsError, match=says):
            QKVLProgram.from_json(json)
        with pytest.raises(DATError):
            compile_program(json)
    with pytest.raises(DATError, match="num_attention_heads"):
        compile_program(program, num_attention_heads=3)
