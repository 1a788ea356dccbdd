"""Mutated programs give a program or a typed error, and nothing else."""

from __future__ import annotations

import random
import re
import time

import pytest

from hf_mech.programs.errors import ProgramsError, PSLError
from hf_mech.programs.psl.library import load_program, program_text
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.values import value_sets

ODD = [
    "\0",
    "\t",
    "\n",
    "\r",
    "  ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "@",
    "'",
    '"',
    "\\",
    "#",
    "//",
    "é",
    "\u2028",
    "==",
    "=",
    "<",
    ">=",
    " or ",
]
TOKEN = re.compile(r"\w+|==|!=|<=|>=|[^\w\s]|\n[ ]*|[ ]+")


def mutated(text: str, draw: random.Random) -> str:
    """One to four changes: of characters, of words and marks, or of lines."""
    for _ in range(draw.randint(1, 4)):
        unit = draw.choice(["character", "token", "line"])
        parts = {"character": list, "token": TOKEN.findall, "line": lambda t: t.splitlines(keepends=True)}[unit](text)
        if not parts:
            return text
        i, j = draw.randrange(len(parts)), draw.randrange(len(parts))
        change = draw.choice(["delete", "double", "swap", "copy", "insert", "cut", "chunk"])
        if change == "delete":
            del parts[i]
        elif change == "double":
            parts.insert(i, parts[i])
        elif change == "swap":
            parts[i], parts[j] = parts[j], parts[i]
        elif change == "copy":
            parts[i] = parts[j]
        elif change == "insert":
            parts.insert(i, draw.choice(ODD))
        elif change == "cut":
            parts = parts[: max(i, 1)]
        else:
            del parts[min(i, j) : max(i, j)]
        text = "".join(parts)
    return text


def small_program() -> str:
    """Every form of the surface in few lines, so that mutations meet them all."""
    return """\
registers: {symbol: 's', position: 'p', mark: 'm', other: 'o'}
constants: {"A", XQ, dollar: "$"}
system: {symbol: symbol, position: position, output: symbol}
watch: [mark]
initial: {other: A}
values: {mark: [A, XQ, '1']}
stop: [dollar]
# first
where_rm symbol[n] == symbol[N] and (position[n] == position[N]@pos_decrement and mark[N] != XQ):
    mark[N] = A
    other[N] = symbol[n]
causal_attn: true
repeat 7:
    repeat:
        where mark[n] in [A, XQ] and other[n] not in ['$', 3]: // trailing
            other[N] = other[n]@pos_increment
        until NO_CHANGE
    where position[n] < position[N] and (symbol[N] == XQ or other[N] < 3 or position[N] >= 2):
        mark[N] = 1
until mark[n] == A and other[N] == other[n]
"""


def outcomes(count: int, seed: int) -> dict[str, int]:
    """How many mutated programs were read, refused by the parser, and refused by the checker."""
    draw = random.Random(seed)
    texts = [program_text("pargen"), *[small_program()] * 7]
    found: dict[str, int] = {"read": 0, "no PSL": 0, "refused": 0}
    for _ in range(count):
        result = read(mutated(draw.choice(texts), draw))
        if not isinstance(result, PSLError):
            found["read"] += 1
            value_sets(result)
        elif result.expression:
            found["refused"] += 1
            assert result.reason
            assert result.mend
        else:
            found["no PSL"] += 1
            assert result.line >= 1
            assert result.message
    return found


def read(text: str) -> Program | PSLError:
    try:
        return load_program(text)
    except PSLError as error:
        return error


def test_the_unmutated_program_is_read() -> None:
    assert len(list(load_program(small_program()).productions)) == 5


def test_mutated_programs_give_typed_errors_only() -> None:
    found = outcomes(150, seed=0)
    assert min(found.values()) > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_mutated_programs_give_typed_errors_only(seed: int) -> None:
    """100,000 in all."""
    assert sum(outcomes(10_000, seed).values()) == 10_000


def test_random_text_gives_typed_errors_only() -> None:
    draw = random.Random(0)
    words = [
        *ODD,
        "where",
        "repeat:",
        "until",
        "NO_CHANGE",
        "and",
        "not",
        "in",
        "registers:",
        "x",
        "[n]",
        "[N]",
        "7",
        ":",
        ",",
    ]
    for _ in range(150):
        text = "".join(draw.choice(words) + draw.choice(["", " ", "\n", "\n  "]) for _ in range(draw.randint(1, 40)))
        with pytest.raises(ProgramsError):
            load_program(text)


def test_a_long_line_of_brackets_ends_soon() -> None:
    start = time.perf_counter()
    for text in (
        "(" * 5_000,
        "where " + "(" * 5_000,
        "registers: {" + "a, " * 5_000,
        "where x[n] in [" + "A, " * 3_000,
    ):
        with pytest.raises(ProgramsError):
            load_program(text)
    assert time.perf_counter() - start < 20
