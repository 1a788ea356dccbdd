"""The backends agree with each other, and with (70)-(71) run word by word with the matrices of (72)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hf_mech.models.dat import DATError, DATForCausalLM, DATModel, DATRepeatError, LayerState, dat_gather
from hf_mech.programs.psl import compile_program
from hf_mech.programs.psl.syntax import Program
from tests.models.dat.literal import Literal
from tests.programs.psl.random_programs import LIMIT, programs, prompts

EXACT = ("gather", "dense", "relaxed")  # the last one at temperature 0

SPREAD = """
registers: {symbol: 's', position: 'p', mark: 'm', count: 'c', seen: 'o', flag: 'a', last: 'z'}
constants: {X, go}
system: {symbol: symbol, position: position, output: seen, parse: flag, eop: last}
initial: {count: 0}
causal_attn: true
where_rm symbol[n] not in [X, "."] and position[n] != position[N]:
    seen[N] = symbol[n]
causal_attn: false
repeat 30:
    where position[n] == count[N]@pos_increment:
        count[N] = position[n]
    repeat 20:
        where symbol[n] == X and position[N] == position[n]@pos_increment:
            mark[N] = X
        where mark[n] == X and position[n] == position[N]@pos_decrement and count[N] != 2:
            mark[N] = X
    until NO_CHANGE
    where position[N] in [1, 2] and mark[N] != count[N]:
        mark[N] = go
    where_rm mark[n] == X and symbol[n] != symbol[N]:
        seen[N] = symbol[n]
until count[n] == position[N] and last[N] == "EOP"
where mark[n] == symbol[N]:
    flag[N] = count[n]
"""
"""Nested repeats, both matches, causal attention, conditions of every kind."""

PROMPTS = ["X a b . c", "a", "b X", "c a a X . b", "a b c"]
COMPLETIONS = ["a", "X b a", "", "q .", "a a"]


def tokens(tokenizer: Any, prompt: str, completion: str) -> list[int]:
    return tokenizer(prompt, completion)["input_ids"] if completion else tokenizer(prompt)["input_ids"]


def traces(model: DATModel, ids: list[int], backend: str) -> list[list[LayerState]]:
    model.config.backend, model.config.relaxation_temperature = backend, 0.0
    return model.trace(torch.tensor([ids]))


def compare(program: Program | str, prompt: str, completion: str) -> None:
    """Every backend is in the state of the literal run in every cell after every layer."""
    model, tokenizer = compile_program(program, max_position_embeddings=LIMIT, num_open_values=4)
    ids = tokens(tokenizer, prompt, completion)
    end = ids.index(1)
    try:
        expected = Literal(model.dat).run(ids[:end], ids[end + 1 :])
    except RecursionError:
        for backend in EXACT:
            with pytest.raises(DATRepeatError):
                traces(model.dat, ids, backend)
        return
    for backend in EXACT:
        groups = traces(model.dat, ids, backend)
        assert len(groups) == len(expected)
        for group, states in zip(groups, expected, strict=True):
            for found, (layer, repetitions, values) in zip(group, states, strict=True):
                assert (found.layer, found.repetitions) == (layer, repetitions)
                assert torch.equal(found.values[0], values), (backend, layer, repetitions)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), st.lists(st.sampled_from(("A", "1", "s", "C")), max_size=2))
def test_the_paper_word_by_word_on_random_programs(program: Program, prompt: list[str], completion: list[str]) -> None:
    compare(program, " ".join(prompt), " ".join(completion))


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), prompts(), st.lists(st.sampled_from(("A", "1", "s", "C")), max_size=3))
def test_the_paper_word_by_word_two_thousand_times(program: Program, prompt: list[str], completion: list[str]) -> None:
    compare(program, " ".join(prompt), " ".join(completion))


@pytest.mark.parametrize(("prompt", "completion"), list(zip(PROMPTS, COMPLETIONS, strict=True)))
def test_the_paper_word_by_word_in_nested_blocks(prompt: str, completion: str) -> None:
    compare(SPREAD, prompt, completion)


# --------------------------------------------------------------------------------------------------- batches, padding


def padded(rows: list[list[int]], side: str) -> tuple[Tensor, Tensor, list[list[int]]]:
    """The batch, its mask, and for each row the columns where its tokens are."""
    longest = max(map(len, rows)) + 2
    ids, mask, places = torch.zeros(len(rows), longest, dtype=torch.long), torch.zeros(len(rows), longest), []
    for i, row in enumerate(rows):
        free = longest - len(row)
        if side == "mixed":  # some left, some right, and one column between the words
            begin = i % (free + 1)
            columns = [begin + j + (j > 0 and begin < free) for j in range(len(row))]
        else:
            columns = [j + (free if side == "left" else 0) for j in range(len(row))]
        ids[i, columns], mask[i, columns] = torch.tensor(row), 1.0
        places.append(columns)
    return ids, mask, places


@pytest.fixture(scope="module")
def compiled() -> tuple[DATForCausalLM, Any]:
    return compile_program(SPREAD, max_position_embeddings=LIMIT, num_open_values=9)


@pytest.mark.parametrize(
    ("backend", "side", "masked"),
    [
        ("gather", "left", True),
        ("gather", "right", False),
        ("gather", "mixed", True),
        ("dense", "left", False),
        pytest.param("relaxed", "mixed", True, marks=pytest.mark.slow),
    ],
)
def test_a_row_of_a_batch_is_that_row_alone(
    compiled: tuple[DATForCausalLM, Any], backend: str, side: str, masked: bool
) -> None:
    model, tokenizer = compiled
    model.config.backend, model.config.relaxation_temperature = backend, 0.0
    rows = [tokens(tokenizer, prompt, completion) for prompt, completion in zip(PROMPTS, COMPLETIONS, strict=True)]
    ids, mask, places = padded(rows, side)
    together = model.dat(ids, mask if masked else None)
    for i, row in enumerate(rows):
        alone = model.dat(torch.tensor([row]))
        assert torch.equal(together.register_values[i, places[i]], alone.register_values[0])
        assert torch.equal(together.last_hidden_state[i, places[i]], alone.last_hidden_state[0])
        free = sorted(set(range(ids.shape[1])) - set(places[i]))
        assert not together.last_hidden_state[i, free].any()


def test_a_row_of_a_batch_is_that_row_alone_at_every_layer(compiled: tuple[DATForCausalLM, Any]) -> None:
    model, tokenizer = compiled
    rows = [tokens(tokenizer, prompt, completion) for prompt, completion in zip(PROMPTS, COMPLETIONS, strict=True)]
    ids, mask, _ = padded(rows, "mixed")
    for backend in EXACT:
        model.config.backend, model.config.relaxation_temperature = backend, 0.0
        together = [{(s.layer, s.repetitions): s.values for s in group} for group in model.dat.trace(ids, mask)]
        for i, row in enumerate(rows):
            for group, states in zip(together, traces(model.dat, row, backend), strict=False):
                for state in states:
                    found = group[state.layer, state.repetitions][i, : state.values.shape[1]]
                    assert torch.equal(found, state.values[0]), (backend, i, state.layer, state.repetitions)


@pytest.mark.parametrize("backend", EXACT)
def test_words_behind_the_prompt_one_by_one_or_at_once(compiled: tuple[DATForCausalLM, Any], backend: str) -> None:
    model, tokenizer = compiled
    model.config.backend, model.config.relaxation_temperature = backend, 0.0
    first, second = (tokenizer(p)["input_ids"] for p in (PROMPTS[0], PROMPTS[2]))
    prompt, mask, _ = padded([first, second], "left")
    words = torch.tensor([tokenizer.convert_tokens_to_ids(["X", "b", "q"])] * 2)
    words[1, 1] = 0  # nil is no cell: this row has a word less
    whole = model(torch.cat([prompt, words], 1), torch.cat([mask, torch.ones(2, 3)], 1))
    cache, logits = None, []
    for columns in (slice(0, prompt.shape[1]), *(slice(i, i + 1) for i in range(prompt.shape[1], prompt.shape[1] + 3))):
        ids = torch.cat([prompt, words], 1)[:, columns]
        out = model(ids, torch.cat([mask, torch.ones(2, 3)], 1)[:, : columns.stop], past_key_values=cache)
        cache = out.past_key_values
        logits.append(out.logits)
    assert torch.equal(torch.cat(logits, 1), whole.logits)
    assert cache.get_seq_length() == prompt.shape[1] + 3


# ------------------------------------------------------------------------------------------- what only QKVL can say


def by_hand(q: dict[str, Any], k: dict[str, Any], **more: Any) -> dict[str, Any]:
    weights = {"q": q, "k": k, "v": {"m": "p"}}
    layer = {"layer_comment": "", "causal_attn": False, "right_match": False, "weights": weights, **more}
    return {
        "register_map": {"symbol": "s", "position": "p", "mark": "m", "empty": "e"},
        "constants_map": {},
        "system_map": {"symbol": "symbol", "position": "position", "output": "mark"},
        "watch_list": [],
        "weights": [layer],
    }


BY_HAND = [
    ({"s": "s"}, {"s": "s"}, [1, 2, 3, 1]),
    ({"s": ["!=", "s"]}, {"s": "s"}, [2, 1, 1, 2]),
    ({"s": "s"}, {"s": ["!=", "s"]}, [2, 1, 1, 2]),
    ({"p": "p@pos_increment"}, {"p": "p"}, [2, 3, 4, None]),
    ({"p": "p@pos_decrement"}, {"p": "p@pos_decrement"}, [1, 2, 3, 4]),
    ({"p": ["!=", "p@pos_increment"]}, {"p": "p"}, [1, 1, 1, 1]),
    # what is undefined matches nothing, not what is undefined too; its negation matches everything
    ({"s": "s@pos_increment"}, {"s": "s@pos_increment"}, [None, None, 3, None]),
    ({"e": "e@pos_decrement"}, {"e": "s@pos_increment"}, [None] * 4),
    ({"s": ["!=", "s@pos_increment"]}, {"s": "s"}, [1] * 4),
    ({"s": ["!=", "s@pos_increment"]}, {"s": "e@pos_increment"}, [None] * 4),
    ({"s": ["!=", "s@pos_increment"]}, {"s": "B"}, [1] * 4),
    ({"s": "s@pos_increment"}, {"s": ["!=", "B"]}, [None, None, 1, None]),
    ({"s": "s@pos_increment"}, {"s": ["not in", "B", "A"]}, [None, None, 1, None]),
    ({"s": ["not in", "A"]}, {"s": "s@pos_increment"}, [3] * 4),
    # constants
    ({"s": "B"}, {"s": "s"}, [2] * 4),
    ({"s": "s"}, {"s": ["in", "B", "7"]}, [None, 1, 1, None]),
    ({"s": ["not in", "A", "B"]}, {"s": "s"}, [3] * 4),
    ({"s": "s"}, {"s": ["in"]}, [None] * 4),
    ({"s": "s"}, {"s": ["not in"]}, [1] * 4),
    ({"s": "A"}, {"s": "A"}, [1] * 4),
    ({"s": "A"}, {"s": "B"}, [None] * 4),
    ({"s": "A"}, {"s": ["not in", "B", "7"]}, [1] * 4),
    ({"s": ["!=", "A"], "p": "p"}, {"s": "A", "p": "p"}, [None] * 4),
    ({"s": ["in", "A", "B"], "p": "p"}, {"s": "B", "p": "p"}, [1, 2, 3, 4]),
    # nil equals nil
    ({"e": "e", "p": "p"}, {"e": "m", "p": "p"}, [1, 2, 3, 4]),
    ({"e": "e"}, {"e": "s"}, [None] * 4),
]
"""Query, key, and the position of the cell that each cell reads."""


@pytest.mark.parametrize(("q", "k", "marks"), BY_HAND)
def test_queries_and_keys_by_hand(q: dict[str, Any], k: dict[str, Any], marks: list[int | None]) -> None:
    model, tokenizer = compile_program(by_hand(q, k), max_position_embeddings=9, num_open_values=3)
    ids = tokenizer("A B 7 A")["input_ids"]
    marked = list(model.config.qkvl["register_map"].values()).index("m")
    expected = [0 if mark is None else tokenizer.convert_tokens_to_ids(str(mark)) for mark in marks]
    assert Literal(model.dat).run(ids[:-1], [])[0][-1][2][:, marked].tolist() == expected
    for backend in EXACT:
        assert traces(model.dat, ids, backend)[0][-1].values[0, :, marked].tolist() == expected, backend


@pytest.mark.parametrize(("right", "causal", "marks"), [(True, False, [4, 2, 3, 4]), (True, True, [1, 2, 3, 4])])
def test_last_match_and_causal_attention(right: bool, causal: bool, marks: list[int]) -> None:
    program = by_hand({"s": "s"}, {"s": "s"}, right_match=right, causal_attn=causal)
    model, tokenizer = compile_program(program, max_position_embeddings=9, num_open_values=3)
    for backend in EXACT:
        model.config.backend, model.config.relaxation_temperature = backend, 0.0
        logits = model(**tokenizer("A B 7 A", return_tensors="pt")).logits[0, :4]
        assert tokenizer.convert_ids_to_tokens(logits.argmax(-1)) == [str(mark) for mark in marks]


# --------------------------------------------------------------------------------------------------------------- (72)


def test_each_row_of_72() -> None:
    """Identity, function, constant, and the ones' complements are blocks of the whole matrices, all else is zero."""
    q = {"a": "s", "b": "p@pos_increment", "c": "A", "d": ["!=", "m"], "e": ["!=", "A"], "f": ["in", "A", "B"]}
    q |= {"g": ["!=", "p@pos_decrement"]}  # the names of targets are free; these are in the order of the blocks
    k = {"a": "s", "b": "p", "c": "m", "d": "e", "e": "s", "f": "m", "g": "e"}
    program = by_hand(q, k)
    program["weights"][0]["weights"]["v"] = {"m": "s", "e": "B"}
    model, tokenizer = compile_program(program, max_position_embeddings=3, num_open_values=2)
    d, dense = model.config.vocab_size, model.dat.to_dense(0)
    registers = {name: i for i, name in enumerate(model.config.qkvl["register_map"].values())}
    a, b = tokenizer.convert_tokens_to_ids(["A", "B"])
    one, eye = torch.ones(d), torch.eye(d)
    increment, decrement = torch.zeros(d, d), torch.zeros(d, d)
    for number in range(3):
        low, high = tokenizer.convert_tokens_to_ids([str(number), str(number + 1)])
        increment[low, high] = decrement[high, low] = 1

    blocks = {("s", 0): eye, ("p", 1): increment, ("m", 3): 1 - eye, ("p", 6): 1 - decrement}
    biases = {2: eye[a], 4: one - eye[a], 5: eye[a] + eye[b]}
    check(dense["query"], registers, d, blocks, biases, targets=7)
    blocks = {("s", 0): eye, ("p", 1): eye, ("m", 2): eye, ("e", 3): eye, ("s", 4): eye, ("m", 5): eye, ("e", 6): eye}
    check(dense["key"], registers, d, blocks, {}, targets=7)
    check(dense["value"], registers, d, {("s", registers["m"]): eye}, {registers["e"]: eye[b]}, targets=4)


def check(
    made: tuple[Tensor, Tensor],
    registers: dict[str, int],
    d: int,
    blocks: dict[tuple[str, int], Tensor],
    biases: dict[int, Tensor],
    targets: int,
) -> None:
    matrix, bias = torch.zeros(len(registers) * d, targets * d), torch.zeros(targets * d)
    for (source, target), block in blocks.items():
        begin = registers[source] * d
        matrix[begin : begin + d, target * d : (target + 1) * d] = block
    for target, vector in biases.items():
        bias[target * d : (target + 1) * d] = vector
    assert torch.equal(made[0], matrix)
    assert torch.equal(made[1], bias)


# ------------------------------------------------------------------------------------------------ weights that change


def test_gather_refuses_other_weights_and_recompile_mends_them() -> None:
    model, tokenizer = compile_program(by_hand({"s": "s"}, {"s": "s"}), max_position_embeddings=9, num_open_values=3)
    prompt = tokenizer("A B A", return_tensors="pt")
    before = model(**prompt).logits
    with torch.no_grad():
        model.dat.layers[0].query.weight.copy_(torch.tensor([[-1.0, 1.0]]))  # `!=` for `==`
    with pytest.raises(DATError, match=r"layers\.0\.query.*recompile"):
        model(**prompt)
    model.config.backend = "dense"
    assert tokenizer.convert_ids_to_tokens(model(**prompt).logits[0, :3].argmax(-1)) == ["2", "1", "2"]
    model.config.backend = "gather"
    model.dat.recompile()
    assert torch.equal(model(**prompt).logits, before)
    with torch.no_grad():
        model.dat.layers[0].value.weight.mul_(1.0)  # a write that changes nothing
    assert torch.equal(model(**prompt).logits, before)


def test_a_model_plans_its_matches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    class Counted(dat_gather.MatchPlan):
        def __init__(self, matches: Any, position: int):
            planned.append(matches)
            super().__init__(matches, position)

    monkeypatch.setattr(dat_gather, "MatchPlan", Counted)
    model, tokenizer = compile_program(SPREAD, max_position_embeddings=LIMIT, num_open_values=4)
    for prompt in PROMPTS:
        model(torch.tensor([tokens(tokenizer, prompt, "")]))
    conditions = [block.until for block in model.dat.program.blocks if block.until is not None]
    assert len(conditions) == 1
    assert planned == [layer.matches for layer in model.dat.program.layers] + conditions


def test_a_copy_of_a_model_that_has_run_gives_the_same() -> None:
    model, tokenizer = compile_program(SPREAD, max_position_embeddings=LIMIT, num_open_values=4)
    ids = torch.tensor([tokens(tokenizer, PROMPTS[0], "")])
    expected = model(ids).logits
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.to(torch.float64)):
        assert torch.equal(other(ids).logits, expected.to(other.dtype))
