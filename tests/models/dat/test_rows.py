"""Few cells are run row by row on integers: the same states as on tensors, at a cost linear in the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hf_mech.models.dat import DATForCausalLM, DATRepeatError, LayerState, dat_row_machine
from hf_mech.models.dat.dat_rows import FirstCells, RowGroup
from hf_mech.programs.psl import PSM, QKVM, compile_program, load_program, lower_program, program_text
from hf_mech.programs.psl.machine import Readable, Sought
from hf_mech.programs.psl.syntax import Program
from tests.models.dat.test_backends import COMPLETIONS, PROMPTS, SPREAD, padded, tokens
from tests.programs.psl.random_programs import LIMIT, WORDS, programs, prompts
from tests.programs.psl.test_growth import calls

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@contextmanager
def on_tensors(wanted: bool = True) -> Iterator[None]:
    """Every prompt counts as long, or every one as short."""
    with patch.object(dat_row_machine, "FEW_CELLS", 0 if wanted else 1 << 30):
        yield


def outcome(model: DATForCausalLM, ids: Tensor) -> Any:
    """Logits, registers, attentions of a further word, and the states of all cells; or that a block did not end."""
    try:
        made, states = model(ids), model.dat(ids)
        more = model.dat(ids[:, -1:].clamp(min=2), past_key_values=made.past_key_values, output_attentions=True)
        return made.logits, states.register_values, more.register_values, *more.attentions, model.dat.trace(ids)
    except DATRepeatError as error:
        return error.bound


def assert_same(model: DATForCausalLM, rows: list[list[int]], side: str) -> None:
    ids, _, _ = padded(rows, side)
    with on_tensors(False):
        by_rows = outcome(model, ids)
    with on_tensors():
        expected = outcome(model, ids)
    if isinstance(expected, int):  # rows may fail in different blocks; a batch names one of these
        with on_tensors():
            alone = [outcome(model, padded([row], side)[0]) for row in rows]
        assert {by_rows, expected} <= {bound for bound in alone if isinstance(bound, int)}
        return
    for found, right in zip(by_rows[:-1], expected[:-1], strict=True):
        assert torch.equal(found, right)
    for group, right_group in zip(by_rows[-1], expected[-1], strict=True):
        assert_same_states(model, group, right_group)


def assert_same_states(model: DATForCausalLM, group: list[LayerState], expected: list[LayerState]) -> None:
    """In a batch the tensors may have further repetitions, in which all rows replay their last one."""
    position = model.dat.program.parts["position"]
    right_values = {(state.layer, state.repetitions): state.values for state in expected}
    assert len(group) <= len(expected)
    for found in group:
        values = right_values[found.layer, found.repetitions]
        cells = values[..., position] > 0
        assert torch.equal(found.values[..., position] > 0, cells)
        assert torch.equal(found.values[cells], values[cells])
    if len(found.values) == 1:
        assert len(group) == len(expected)


@settings(RELAXED, max_examples=12)
@given(programs(), st.lists(st.tuples(prompts(), st.lists(st.sampled_from(WORDS), max_size=3)), min_size=1, max_size=3))
def test_random_programs_and_batches(program: Program, texts: list[tuple[list[str], list[str]]]) -> None:
    model, tokenizer = compile_program(program, max_position_embeddings=LIMIT, num_open_values=9)
    rows = [tokens(tokenizer, " ".join(prompt), " ".join(completion)) for prompt, completion in texts]
    assert_same(model, rows, "left")


@pytest.mark.parametrize("side", ["left", "right", "mixed"])
def test_nested_blocks_and_rows_of_unlike_length(side: str) -> None:
    model, tokenizer = compile_program(SPREAD, max_position_embeddings=LIMIT, num_open_values=9)
    assert_same(model, [tokens(tokenizer, *pair) for pair in zip(PROMPTS, COMPLETIONS, strict=True)], side)


def by_hand(*pairs: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    """QKVL of one layer that says the word it reads, with these queries and keys."""
    names = [f"s{'`' * place}" for place in range(len(pairs))]
    weights = {"q": dict(zip(names, (q for q, _ in pairs), strict=True)), "v": {"x": "s"}}
    weights["k"] = dict(zip(names, (k for _, k in pairs), strict=True))
    return {
        "register_map": {"symbol": "s", "position": "p", "said": "x"},
        "constants_map": {"A": "A"},
        "system_map": {"symbol": "symbol", "position": "position", "output": "said"},
        "functions": {"turned": {"A": "B", "B": "A", "1": "B"}},
        "weights": [{"weights": weights, **more}],
    }


SIDES = ["s", "s@turned", "p@pos_increment", "A", ["!=", "s"], ["!=", "s@turned"], ["!=", "A"], ["in", "A", "1"]]
SIDES += [["not in", "A", "1"], "p", ["!=", "p@pos_decrement"]]
CONDITIONS = [side for side in SIDES if isinstance(side, list)]


PAIRS = [(q, k) for q in SIDES for k in SIDES if q not in CONDITIONS or k not in CONDITIONS]
KINDS = [
    (second, {"right_match": right, "causal_attn": causal})
    for second in ([], [(["!=", "p"], "p")])
    for right in (False, True)
    for causal in (False, True)
]


def check_pair(query: Any, key: Any, kind: int) -> None:
    second, more = KINDS[kind % len(KINDS)]
    program = by_hand((query, key), *second, **more)
    model, tokenizer = compile_program(program, max_position_embeddings=9, num_open_values=3)
    rows = [tokens(tokenizer, "A B 1 A c", "B A"), tokens(tokenizer, "2 B", "")]
    assert_same(model, rows, "left")


@pytest.mark.parametrize("number", range(len(PAIRS)), ids=lambda number: str(PAIRS[number]))
def test_all_pairs_of_sides(number: int) -> None:
    """Also those that PSL cannot write: functions on both sides, constants of both. One kind of layer a pair."""
    check_pair(*PAIRS[number], number)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_all_pairs_of_sides_in_all_kinds_of_layers(kind: int) -> None:
    for pair in PAIRS:
        check_pair(*pair, kind)


# ---------------------------------------------------------------------------------------------------------- the cache


@pytest.fixture(scope="module")
def pargen() -> tuple[DATForCausalLM, Any]:
    return compile_program(program_text("pargen"), max_position_embeddings=64, num_open_values=20)


def test_rows_that_part_and_meet_again(pargen: tuple[DATForCausalLM, Any]) -> None:
    """A row taken twice, continued with unlike words, cropped, and continued again is the whole text."""
    model, tokenizer = pargen
    prompt = tokenizer("Q a b A b . Q c b A", return_tensors="pt")
    words = torch.tensor(tokenizer.convert_tokens_to_ids(["a", "b", ".", "c"]))
    cache = model.dat(**prompt, use_cache=True).past_key_values
    model.dat(words[None, :1], past_key_values=cache)
    cache.reorder_cache(torch.tensor([0, 0, 0]))
    for more in (words[[0, 1, 2]], words[[3, 3, 3]], words[[1, 3, 0]]):
        model.dat(more[:, None], past_key_values=cache)
    cache.crop(-2)
    cache.batch_select_indices(torch.tensor([2, 0]))
    found = model.dat(words[None].expand(2, -1), past_key_values=cache).register_values
    for row, own in enumerate((2, 0)):
        whole = torch.cat([prompt["input_ids"][0], words[:1], words[[own]], words])[None]
        with on_tensors():
            assert torch.equal(found[row], model.dat(whole).register_values[0, -4:])


def test_a_failed_word_leaves_the_cache_as_it_was() -> None:
    model, tokenizer = compile_program(
        "registers: {symbol: 's', position: 'p', said: 'x'}\nconstants: {endless}\n"
        "system: {symbol: symbol, position: position, output: said}\n"
        "where_rm symbol[n] == symbol[N] and position[n] != position[N]:\n    said[N] = position[n]\n"
        "repeat 5:\n    where symbol[n] != symbol[N]:\n        said[N] = said[n]\n"
        "until symbol[N] != endless\n",
        max_position_embeddings=9,
        num_open_values=4,
    )
    prompt = tokenizer("a b a b", return_tensors="pt")["input_ids"]
    a, endless = (torch.tensor([[index]]) for index in tokenizer.convert_tokens_to_ids(["a", "endless"]))
    cache = model.dat(torch.cat([prompt, a], 1), use_cache=True).past_key_values
    with pytest.raises(DATRepeatError):
        model.dat(endless, past_key_values=cache)
    found = model.dat(a, past_key_values=cache).register_values
    assert torch.equal(found[:, -1], model.dat(torch.cat([prompt, a, a], 1)).register_values[:, -1])


def test_the_size_chooses(pargen: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = pargen
    prompt = tokenizer("Q a b A b . Q c b A", return_tensors="pt")["input_ids"]
    length = prompt.shape[1] - 1
    with patch.object(dat_row_machine, "FEW_CELLS", 2 * length):
        for rows, few in ((1, True), (2, True), (3, False)):
            cache = model.dat(prompt.expand(rows, -1), use_cache=True).past_key_values
            model.dat(prompt[:, :1].expand(rows, -1), past_key_values=cache)
            assert [isinstance(group, RowGroup) for group in cache.history.groups] == [few, few]
    recorded = model.dat(prompt, use_cache=True, output_attentions=True).past_key_values
    assert not isinstance(recorded.history.groups[0], RowGroup)


# -------------------------------------------------------------------------------------------------------- the growth


Cells = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=12)


@settings(RELAXED, max_examples=40)
@given(Cells, Cells, st.booleans())
def test_the_index_finds_what_a_search_finds(cells: list[Any], seeking: list[Any], last: bool) -> None:
    index, readable = FirstCells(last), Readable(last)
    for number, (key, *others) in enumerate(cells):
        index.add(number, (key,), tuple(others))
        readable.add({"number": str(number)}, Sought((key,), tuple(others)))
    for key, a, b in seeking:
        right = [n for n, cell in enumerate(cells) if cell[0] == key and cell[1] != a and cell[2] != b]
        expected = right[-1 if last else 0] if right else None
        assert index.find((key,), (a, b)) == expected
        found = readable.find(Sought((key,), (a, b)))
        assert (None if found is None else int(found["number"])) == expected


ALL_TESTS = """
registers: {symbol: 's', position: 'p', said: 'x', first: 'f', near: 'e', other: 'o'}
system: {symbol: symbol, position: position, output: said}
where symbol[n] == symbol[N] and position[n] != position[N]:
    first[N] = position[n]
where_rm symbol[n] != symbol[N]:
    other[N] = symbol[n]
where position[n] == position[N]@pos_increment:
    near[N] = symbol[n]
causal_attn: true
where_rm symbol[n] == symbol[N] and position[n] != position[N]:
    said[N] = near[n]
where symbol[n] != other[N] and first[n] == first[N]:
    first[N] = symbol[n]
"""
"""Every kind of test of two cells. The third word is always the same: a search from either side would not end soon."""


def text_of(length: int) -> list[str]:
    return [f"w{place % 7}" if place % 3 else "same" for place in range(length)]


@pytest.mark.parametrize("kind", ["psm", "qkvm", "rows"])
def test_twice_the_words_are_twice_the_calls(kind: str) -> None:
    program = load_program(ALL_TESTS)
    if kind == "rows":
        model, tokenizer = compile_program(program, max_position_embeddings=512, num_open_values=9)
        read = {length: tokenizer(" ".join(text_of(length)), return_tensors="pt") for length in (20, 40, 80)}
        run = {length: partial(model, **batch, logits_to_keep=1) for length, batch in read.items()}
    else:
        machine = PSM(program) if kind == "psm" else QKVM(lower_program(program))
        run = {length: partial(machine.run, text_of(length), max_new_tokens=0) for length in (20, 40, 80)}
    with on_tensors(False), torch.no_grad():
        run[20]()  # what is done once
        few, more, many = (calls(run[length]) for length in (20, 40, 80))
    assert many - more < 2.1 * (more - few)


@pytest.mark.parametrize("kind", ["psm", "rows"])
def test_a_word_costs_the_same_after_a_long_prompt(kind: str) -> None:
    program = load_program(ALL_TESTS)
    cost = {}
    if kind == "rows":
        model, tokenizer = compile_program(program, max_position_embeddings=512, num_open_values=9)
    for length in (40, 103):  # texts that end alike, so the further words are alike
        if kind == "rows":
            prompt = tokenizer(" ".join(text_of(length)), return_tensors="pt")
            word = prompt["input_ids"][:, 1:2]
            with on_tensors(False), torch.no_grad():
                cache = model(**prompt).past_key_values
                model(word, past_key_values=cache)  # makes the index
                cost[length] = calls(partial(model, word, past_key_values=cache, logits_to_keep=1))
        else:
            one, more = (calls(partial(PSM(program).run, text_of(length), max_new_tokens=words)) for words in (2, 7))
            cost[length] = more - one
    assert abs(cost[103] - cost[40]) < 0.1 * cost[40]
