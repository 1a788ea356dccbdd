"""QKVL as JSON: App. J's forms are read, what is written is read back, and what is malformed is named."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.qkvl import QKVLProduction, QKVLProgram, QKVLRepeat, Source

PROGRAM: dict[str, Any] = {
    "register_map": {"symbol": "s", "position": "p", "region": "r"},
    "constants_map": {"XQ": None, "start": "Q"},
    "system_map": {"symbol": "symbol", "position": "position", "output": "symbol"},
    "watch_list": ["region"],
    "weights": [
        {
            "layer_comment": "// mark the start",
            "causal_attn": True,
            "right_match": False,
            "weights": {"q": {"s`": "Q", "p": "p"}, "k": {"s`": "s", "p": ["!=", "1"]}, "v": {"r": ["in", "r"]}},
        },
        {
            "layer_comment": "",
            "until": {"q": {"r": "r"}, "k": {"r": ["in", "XQ", "CQ"]}},
            "weights": [
                {"weights": {"q": {"p`": "p@pos_decrement"}, "k": {"p`": "p"}, "v": {"r": "r"}}},
                {"until": {}, "bound": 3, "weights": []},
                {"weights": {"q": {"r": "r"}, "k": {"r": "s@swap"}, "v": {}}},
            ],
        },
    ],
    "functions": {"swap": {"a": "b"}},
}


def test_appendix_j_is_read_and_written_back() -> None:
    before = copy.deepcopy(PROGRAM)
    program = QKVLProgram.from_json(PROGRAM)
    first, second = program.weights
    assert isinstance(first, QKVLProduction)
    assert isinstance(second, QKVLRepeat)
    assert first.causal_attn
    assert second.until == QKVLProduction({"r": "r"}, {"r": ["in", "XQ", "CQ"]})
    assert (second.bound, second.weights[1]) == (1000, QKVLRepeat((), None, 3))
    assert program.constants_map == {"XQ": "XQ", "start": "Q"}
    assert program.registers == ("s", "p", "r", "p`", "s`")
    assert len(list(program.productions)) == 3

    written = program.to_json()
    assert QKVLProgram.from_json(json.loads(json.dumps(written))) == program
    written["weights"][0]["weights"]["k"]["p"].append("changed")
    assert QKVLProgram.from_json(PROGRAM) == program
    assert before == PROGRAM


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s", Source("s")),
        ("p@pos_increment", Source("p", "pos_increment")),
        ("XQ", Source(constants=("XQ",))),
        ("mail@home", Source(constants=("mail@home",))),
        (["!=", "s"], Source("s", negated=True)),
        (["!=", "p@swap"], Source("p", "swap", negated=True)),
        (["!=", "XQ"], Source(constants=("XQ",), negated=True)),
        (["in", "A", "s"], Source(constants=("A", "s"), several=True)),
        (["not in", "A"], Source(constants=("A",), several=True, negated=True)),
    ],
)
def test_sources(source: Any, expected: Source) -> None:
    assert Source.from_json(source, ["s", "p"], "k") == expected
    assert expected.to_json(["s", "p"]) == source


def changed(path: str, value: Any) -> dict[str, Any]:
    """The program with the thing at a path replaced, or removed where the value is `...`."""
    program = copy.deepcopy(PROGRAM)
    *keys, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    place: Any = program
    for key in keys:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return program


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("weights", ..., "QKVL: missing weights"),
        ("extra", 1, "QKVL: unknown extra"),
        ("register_map", [], "register_map: expected an object"),
        ("register_map/region", 3, "register_map['region']: expected a str"),
        ("register_map/region", "s", "share a short name"),
        ("register_map/region", "r`", "register_map['region']: a short name"),
        ("system_map/output", ..., "system_map: missing output"),
        ("system_map/output", "words", "system_map['output']: unknown register 'words'"),
        ("watch_list", ["r"], "watch_list[0]: unknown register 'r'"),
        ("initial", {"region": "R"}, "initial: unknown register 'region'"),
        ("values", {"r": "XQ"}, "values['r']: expected a list of strings"),
        ("functions", {"pos_increment": {}}, "functions['pos_increment']: this function is built in"),
        ("weights", {}, "weights: expected a list"),
        ("weights/0", "layer", "weights[0]: expected an object"),
        ("weights/0/causal_attn", "false", "weights[0].causal_attn: expected a bool"),
        ("weights/0/weights/k", ..., "weights[0].weights: missing k"),
        ("weights/0/weights/k/p", ..., "weights[0].weights.k: lacks 'p'"),
        ("weights/0/weights/q/p", ["!=", "2"], "weights[0].weights: 'p' is a condition in q and in k"),
        ("weights/0/weights/q/p", ["<", "2"], "weights[0].weights.q['p']: expected a string, ['!='"),
        ("weights/0/weights/q/p", "p@", "weights[0].weights.q['p']: expected a function's name"),
        ("weights/0/weights/q/p", "p@swop", "weights[0].weights.q['p']: the function `@swop`"),
        ("weights/0/weights/v/r", ["!=", "s"], "weights[0].weights.v['r']: expected a register or one constant"),
        ("weights/0/weights/v/p", "1", "weights[0].weights.v['p']: the position register cannot be set"),
        ("weights/0/weights/v/r`", "1", "weights[0].weights.v: unknown register 'r`'"),
        ("weights/1/bound", 0, "weights[1].bound: expected a positive integer"),
        ("weights/1/until", "NO_CHANGE", "weights[1].until: expected an object"),
        ("weights/1/until", {"q": {}, "k": {}}, "weights[1].until: expected {} for NO_CHANGE"),
        ("weights/1/weights/0/weights/q/p`", 7, "weights[1].weights[0].weights.q['p`']: expected a string or a list"),
    ],
)
def test_what_is_malformed_is_named(path: str, value: Any, said: str) -> None:
    with pytest.raises(ProgramsError) as caught:
        QKVLProgram.from_json(changed(path, value))
    assert said in str(caught.value)


def test_blocks_too_deep_are_refused() -> None:
    block: dict[str, Any] = {"until": {}, "weights": []}
    for _ in range(200):
        block = {"until": {}, "weights": [block]}
    with pytest.raises(ProgramsError, match="deep"):
        QKVLProgram.from_json({**PROGRAM, "weights": [block]})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["s", "p", "!=", "in", "r@swap", "", "`"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["q", "k", "s", "p`"]), inner),
    max_leaves=6,
)


def paths(place: Any, prefix: str = "") -> list[str]:
    """The paths of everything in a program."""
    if not isinstance(place, dict | list):
        return []
    items = place.items() if isinstance(place, dict) else enumerate(place)
    return [path for key, value in items for path in [f"{prefix}{key}", *paths(value, f"{prefix}{key}/")]]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(paths(PROGRAM)), ANYTHING | st.just(...))
def test_anything_anywhere_is_read_or_refused_with_a_typed_error(path: str, value: Any) -> None:
    try:
        program = QKVLProgram.from_json(changed(path, value))
    except ProgramsError:
        return
    assert QKVLProgram.from_json(program.to_json()) == program
