"""Bad input: refused with an error of the family whose text says what to do, and never with another one."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hf_mech.models.dat import (
    DATConfig,
    DATError,
    DATForCausalLM,
    DATLengthError,
    DATModel,
    DATRepeatError,
    DATTokenizer,
)
from hf_mech.programs.psl import compile_program

PROGRAM = """
registers: {symbol: 's', position: 'p', mark: 'm', other: 'o', flag: 'a', last: 'z'}
constants: {"A", XQ, dollar: "$"}
system: {symbol: symbol, position: position, output: mark, parse: flag, eop: last}
watch: [mark]
initial: {other: A}
values: {other: [A, XQ, "1"]}
stop: [dollar]
where_rm symbol[n] == symbol[N] and position[n] == position[N]@pos_decrement and mark[N] != XQ:
    mark[N] = symbol[n]
repeat 9:
    where mark[n] not in [A, "B"] and symbol[n] != symbol[N]:
        mark[N] = symbol[n]
        other[N] = XQ
    repeat:
        where last[N] == "EOP":
            last[N] = mark[N]
    until NO_CHANGE
until symbol[n] == symbol[N] and position[n] in [1, 2]
"""


@pytest.fixture(scope="module")
def compiled() -> tuple[DATForCausalLM, DATTokenizer]:
    return compile_program(PROGRAM, max_position_embeddings=6, num_open_values=4)


# ------------------------------------------------------------------------------------------------------------- prompts


def ids(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


def test_the_size_that_these_tests_take_for_granted(compiled: tuple[DATForCausalLM, DATTokenizer]) -> None:
    assert compiled[0].config.vocab_size == len(compiled[1].space)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (ids([9, 99, 1]), DATError, r"between 0 and \d+, got 1 to 99"),
        (ids([9, -1, 1]), DATError, "got -1 to 9"),
        (ids([9, 10]), DATError, r"rows \[0\] have \[0\]"),
        (ids([9, 1, 0], [9, 1, 1], [1, 9, 1]), DATError, r"rows \[1, 2\] have \[2, 2\]"),
        (ids([0, 0, 1]), DATError, r"needs a word; rows \[0\]"),
        (ids([9, 9, 1], [1, 9, 9]), DATError, r"needs a word; rows \[1\]"),
        (ids([9] * 7 + [1]), DATLengthError, "may have 6 words, got 7.*max_position_embeddings"),
        (ids([9] * 6 + [1, 9]), DATLengthError, "may have 6 words, got 7"),
        (ids([9, 1]).float(), DATError, r"integers \[batch, length\], got torch.float32 \(1, 2\)"),
        (ids([9, 1]).bool(), DATError, "got torch.bool"),
        (torch.tensor([9, 1]), DATError, r"\(2,\)"),
        (torch.tensor([[[9, 1]]]), DATError, r"\(1, 1, 2\)"),
    ],
)
def test_tokens_that_are_no_prompt(
    compiled: tuple[DATForCausalLM, DATTokenizer], tokens: torch.Tensor, error: type[DATError], message: str
) -> None:
    for backend in ("gather", "dense", "relaxed"):
        compiled[0].config.backend = backend
        for model in (compiled[0], compiled[0].dat):
            with pytest.raises(error, match=message):
                model(tokens)


def test_a_masked_end_is_none(compiled: tuple[DATForCausalLM, DATTokenizer]) -> None:
    with pytest.raises(DATError, match=r"rows \[0\] have \[0\]"):
        compiled[0](ids([9, 1]), torch.tensor([[1, 0]]))


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (3,), (1, 3, 3), (1, 0)])
def test_a_mask_of_another_shape(compiled: tuple[DATForCausalLM, DATTokenizer], shape: tuple[int, ...]) -> None:
    with pytest.raises(DATError, match="attention_mask must have a row"):
        compiled[0](ids([9, 9, 1]), torch.ones(shape))


def test_generation_that_runs_out_of_positions(compiled: tuple[DATForCausalLM, DATTokenizer]) -> None:
    model, tokenizer = compile_program(
        "registers: {symbol: 's', position: 'p'}\n"
        "system: {symbol: symbol, position: position, output: symbol}\n"
        "where position[n] == position[N]:\n    symbol[N] = symbol[n]\n",
        max_position_embeddings=6,
        num_open_values=4,
    )
    prompt = tokenizer("a b c d", return_tensors="pt")
    assert model.generate(**prompt, max_new_tokens=3).shape == (1, 8)  # the last word needs no cell
    with pytest.raises(DATLengthError, match=r"6 words, got 7.*fewer max_new_tokens"):
        model.generate(**prompt, max_new_tokens=4)


def test_a_block_that_does_not_end() -> None:
    model, tokenizer = compile_program(
        "registers: {symbol: 's', position: 'p', last: 'z'}\n"
        "system: {symbol: symbol, position: position, output: symbol, eop: last}\n"
        "constants: {}\n"
        "repeat 5:\n"
        "    where symbol[N] == 1:\n        symbol[N] = 1\n"
        'until position[n] == 1 and last[n] == "EOP"\n',
        max_position_embeddings=6,
        num_open_values=4,
    )
    for backend in ("gather", "dense"):
        model.config.backend = backend
        model(**tokenizer("x", return_tensors="pt"))
        with pytest.raises(DATRepeatError, match="not ended after 5 repetitions; raise its bound"):
            model(**tokenizer(["x", "x y"], padding=True, return_tensors="pt"))


def test_labels_with_the_gather_backend_give_a_loss_without_gradients(
    compiled: tuple[DATForCausalLM, DATTokenizer],
) -> None:
    """A loss can be measured; it cannot be trained on, and torch says so."""
    model, tokenizer = compiled
    model.config.backend = "gather"
    batch = tokenizer("A x", "x", return_tensors="pt")
    loss = model(**batch, labels=batch["input_ids"]).loss
    assert loss.isfinite()
    assert not loss.requires_grad


# ------------------------------------------------------------------------------------------------------- configurations


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_position_embeddings": 0}, "max_position_embeddings must be at least 1, got 0"),
        ({"max_position_embeddings": -3}, "got -3"),
        ({"num_open_values": -1}, "num_open_values must be at least 0, got -1"),
        ({"backend": "fast"}, r"backend must be one of .*'gather'.* got 'fast'"),
        ({"relaxation_temperature": -0.1}, "relaxation_temperature must be 0 or more"),
        ({"logit_scale": 0}, "logit_scale positive"),
        ({"pad_token_id": 3}, "pad_token_id is nil, 0"),
        ({"eop_token_id": 0}, "eop_token_id is 1"),
        ({"constants": []}, "is no constant of the configuration"),
    ],
)
def test_values_out_of_range(options: dict[str, Any], message: str) -> None:
    qkvl = compile_program(PROGRAM, num_open_values=4)[0].config.qkvl
    with pytest.raises(DATError, match=message):
        DATConfig(qkvl=qkvl, **options)


def at(program: dict[str, Any], *path: str | int) -> Any:
    for step in path:
        program = program[step]  # type: ignore[index]
    return program


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.pop("weights"), "weights"),
        (lambda p: p.update(weights=[]), "no layer"),
        (lambda p: p["system_map"].pop("output"), r"lack \['output'\]"),
        (lambda p: p["system_map"].update(symbol="position"), "both symbol and position"),
        (lambda p: p["system_map"].update(symbol="nothing"), "nothing"),
        (lambda p: p["register_map"].update(mark="o"), "share a short name"),
        (lambda p: at(p, "weights", 0, "weights", "v").update(p="s"), "writes the position register"),
        (lambda p: at(p, "weights", 0, "weights", "v").update(m=["!=", "s"]), "no single value"),
        (lambda p: at(p, "weights", 0, "weights", "v").update(m=["in"]), "no single value"),
        (lambda p: at(p, "weights", 0, "weights", "v").update(m="p@turn"), "No function 'turn'"),
        (lambda p: at(p, "weights", 0, "weights", "v").update(g="s"), "g"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(x="s"), "same targets"),
        (lambda p: at(p, "weights", 0, "weights").update(q={}, k={}), "at least one"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(m="m@turn"), "No function 'turn'"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(m=["=>", "m"]), "Expected '!=', 'in' or 'not in'"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(m=["!=", "m", "s"]), "no QKVL program"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(m=["!=", ["in", "A"]]), "after '!='"),
        (lambda p: at(p, "weights", 0, "weights", "q").update(m=["not in", "A"]), "must be a single value"),
        (lambda p: at(p, "weights", 1).update(bound=0), "must be 1 or more, got 0"),
        (lambda p: at(p, "weights", 1).update(bound="9"), "must be 1 or more, got '9'"),
        (lambda p: at(p, "weights", 1).update(until={"q": {"m": "m"}}), "'k'"),
    ],
)
def test_malformed_qkvl(
    compiled: tuple[DATForCausalLM, DATTokenizer], change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    qkvl = copy.deepcopy(compiled[0].config.qkvl)
    change(qkvl)
    with pytest.raises(DATError, match=message):
        DATConfig(qkvl=qkvl)


ODD: list[Any] = [None, 0, 1, -1, True, 1.5, "", "s", "p", "A", "m@pos_increment", "@", "m@", [], ["in"], ["!="], {}]
ODD += [["!=", "s"], ["not in", "A", "B"], [["in"]], {"q": {}}, {"p": "p"}, "EOP", "until", "weights", ["!=", 3]]


def mutated(json: Any, draw: random.Random) -> Any:
    """The JSON with one to three places taken away, doubled, exchanged or replaced by something odd."""
    json = copy.deepcopy(json)
    for _ in range(draw.randint(1, 3)):
        places: list[tuple[Any, Any]] = []

        def collect(node: Any, places: list[tuple[Any, Any]] = places) -> None:
            entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            for key, child in list(entries):
                places.append((node, key))
                collect(child)

        collect(json)
        if not places:
            return json
        node, key = draw.choice(places)
        other, other_key = draw.choice(places)
        change = draw.choice(["delete", "odd", "odd", "copy", "rename"])
        if change == "delete":
            del node[key]
        elif change == "odd":
            node[key] = copy.deepcopy(draw.choice(ODD))
        elif change == "copy":
            node[key] = copy.deepcopy(other[other_key])
        elif isinstance(node, dict):
            node[draw.choice(["q", "k", "v", "s", "p", "m", "mark", "until", "weights", "x"])] = node.pop(key)
    return json


def check_mutations(qkvl: dict[str, Any], seeds: range) -> int:
    """Each makes a model that runs or an error of the family; returns how many made a model."""
    models = 0
    for seed in seeds:
        made = mutated(qkvl, random.Random(seed))
        try:
            config = DATConfig(qkvl=made, max_position_embeddings=6, num_open_values=3)
        except DATError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__} for {json.dumps(made)}") from error
        models += 1
        first = config.vocab_size - 3
        tokens = torch.tensor([[first, 4, first + 1, 1, first]])
        results = []
        for backend in ("gather", "dense"):
            config.backend = backend
            try:
                results.append(DATModel(config)(tokens).register_values.tolist())
            except DATRepeatError:
                results.append(None)
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}: {backend}, {type(error).__name__} for {json.dumps(made)}"
                ) from error
        assert results[0] == results[1], f"seed {seed}: the backends differ for {json.dumps(made)}"
    return models


def test_mutated_qkvl_gives_a_model_or_a_typed_error(compiled: tuple[DATForCausalLM, DATTokenizer]) -> None:
    models = check_mutations(compiled[0].config.qkvl, range(150))
    assert 15 < models < 135


@pytest.mark.slow
def test_twenty_thousand_mutations_of_qkvl(compiled: tuple[DATForCausalLM, DATTokenizer]) -> None:
    check_mutations(compiled[0].config.qkvl, range(1_000, 21_000))


def test_an_unknown_backend_is_refused_wherever_it_is_named(tmp_path: Path) -> None:
    model = DATForCausalLM(DATConfig(max_position_embeddings=4, num_open_values=4))
    model.save_pretrained(tmp_path)
    with pytest.raises(DATError, match=r"backend must be one of 'gather', 'dense', 'relaxed', got 'fast'"):
        DATForCausalLM.from_pretrained(tmp_path, backend="fast")
    with pytest.raises(DATError, match=r"backend must be one of .* got 'relaxd'"):
        model.config.backend = "relaxd"
