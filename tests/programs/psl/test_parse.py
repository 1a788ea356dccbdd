"""The parser: every form of the surface, odd files, and errors that show where."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from hf_mech.programs.errors import ProgramsError, PSLError
from hf_mech.programs.psl.library import program_text
from hf_mech.programs.psl.parse import MAX_NESTING, parse_program
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test

HEAD = """\
registers: {symbol: 's', position: 'p', mark: 'm', other}
constants: {"A", XQ, dollar: "$", 7}
system: {symbol: symbol, position: position, output: symbol}
"""


def parse(body: str) -> Program:
    return parse_program(HEAD + body)


def only(body: str) -> Production:
    (production,) = parse(body).productions
    return production


def conditions(condition: str) -> tuple[Test, ...]:
    return only(f"where {condition}:\n  mark[N] = A\n").tests


# ------------------------------------------------------------------------------------------------------- declarations


def test_declarations() -> None:
    program = parse(
        "watch: [mark, symbol]\ninitial: {mark: dollar, other: 3}\nvalues: {mark: [A, 'x', 0,]}\nstop: [XQ, 'end']\n"
    )
    assert program.registers == {"symbol": "s", "position": "p", "mark": "m", "other": "other"}
    assert program.constants == {"A": "A", "XQ": "XQ", "dollar": "$", "7": "7"}
    assert program.system == {"symbol": "symbol", "position": "position", "output": "symbol"}
    assert program.watch == ("mark", "symbol")
    assert program.initial == {"mark": "$", "other": "3"}
    assert program.values == {"mark": ("A", "x", "0")}
    assert program.stop == ("XQ", "end")
    assert program.statements == ()
    assert program.source.startswith(HEAD)


def test_declarations_stand_in_any_order_over_several_lines_and_may_be_empty() -> None:
    program = parse_program(
        "watch: []\ninitial: {mark: A}\nconstants: {\n  A, # one\n}\nregisters: {\n mark\n: 'm'\n}\nstop: []"
    )
    assert program.initial == {"mark": "A"}
    assert program.registers == {"mark": "m"}
    assert program.watch == ()


def test_a_section_may_be_written_in_parts() -> None:
    assert parse("registers: {more: '+'}\nregisters: {}\n").registers["more"] == "+"


def test_quotes_and_escapes() -> None:
    program = parse_program(r"""constants: {one: 'it\'s', two: "say\"", three: '\\', four: "it's"}""")
    assert list(program.constants.values()) == ["it's", 'say"', "\\", "it's"]


def test_a_hash_or_slashes_in_a_string_start_no_comment() -> None:
    assert parse_program("constants: {a: '#', b: '//x'} // so it is\n").constants == {"a": "#", "b": "//x"}


def test_an_empty_program_has_nothing() -> None:
    for text in ("", "\n\n", "# nothing\n   // at all"):
        assert parse_program(text).statements == ()


# --------------------------------------------------------------------------------------------------------- productions


def test_tests_with_constants() -> None:
    mark = Reference("mark", "n")
    assert conditions("mark[n] == A") == (Test(mark, "==", Constants(("A",))),)
    assert conditions("mark[n] != dollar") == (Test(mark, "!=", Constants(("$",))),)
    assert conditions("mark[n] == 'free'") == (Test(mark, "==", Constants(("free",))),)
    assert conditions("mark[n] == 17") == (Test(mark, "==", Constants(("17",))),)
    assert conditions("mark[n] in [A, 'x', 3]") == (Test(mark, "in", Constants(("A", "x", "3"))),)
    assert conditions("mark[n] not in [XQ]") == (Test(mark, "not in", Constants(("XQ",))),)


def test_tests_with_registers() -> None:
    assert conditions("mark[n] == other[N]") == (Test(Reference("mark", "n"), "==", Reference("other", "N")),)
    assert conditions("mark[N] != other[n]@pos_increment") == (
        Test(Reference("mark", "N"), "!=", Reference("other", "n", "pos_increment")),
    )


def test_conjunctions_parentheses_and_lines() -> None:
    flat = conditions("mark[n] == A and mark[N] == 1 and other[n] == 2")
    assert len(flat) == 3
    assert conditions("(mark[n] == A and (mark[N] == 1)) and ((other[n] == 2))") == flat
    assert conditions("mark[n] == A and\n      mark[N] == 1 and # so far\n\n  // and on\n other[n] == 2") == flat
    assert conditions("(mark[n] == A\n and mark[N] == 1\nand other[n] ==\n 2)") == flat


def test_assignments() -> None:
    assert only("where mark[n] == A:\n  mark[N] = dollar\n  other[N] = mark[n]\n").assignments == (
        Assignment("mark", "$"),
        Assignment("other", Reference("mark", "n")),
    )
    (image,) = only("where mark[n] == A:\n  mark[N] = other[n]@pos_increment\n").assignments
    assert image == Assignment("mark", Reference("other", "n", "pos_increment"))


@pytest.mark.parametrize(("word", "right"), [("where", False), ("where_lm", False), ("where_rm", True)])
def test_leftmost_and_rightmost(word: str, right: bool) -> None:
    assert only(f"{word} mark[n] == A:\n  mark[N] = A").right_match is right


def test_causal_attn_holds_for_what_follows_it() -> None:
    production = "where mark[n] == A:\n  mark[N] = A\n"
    inner = "".join(f"  {line}\n" for line in production.splitlines())
    program = parse(
        f"{production}causal_attn: true\n{production}"
        f"repeat:\n{inner}  causal_attn: false\n{inner}until NO_CHANGE\n{production}"
    )
    assert [item.causal for item in program.productions] == [False, True, True, False, False]


def test_places_count_from_one() -> None:
    production = only("where mark[n] == A:\n  mark[N] = A\n")
    assert (production.place.line, production.place.column) == (4, 1)
    assert (production.tests[0].left.place.line, production.tests[0].left.place.column) == (4, 7)
    assert (production.assignments[0].place.line, production.assignments[0].place.column) == (5, 3)


# ------------------------------------------------------------------------------------------------------ repeat blocks

BODY = "  where mark[n] == A:\n    mark[N] = A\n"


def block(text: str) -> Repeat:
    (statement,) = parse(text).statements
    assert isinstance(statement, Repeat)
    return statement


def test_repeat_until_no_change() -> None:
    repeat = block(f"repeat:\n{BODY}until NO_CHANGE\n")
    assert (repeat.until, repeat.bound, len(repeat.body)) == (None, 1000, 1)


def test_repeat_with_a_bound_and_conditions() -> None:
    repeat = block(f"repeat 500:\n{BODY}{BODY}until mark[n] == A and (other[N] in [A, XQ])\n")
    assert repeat.bound == 500
    assert len(repeat.body) == 2
    assert repeat.until == (
        Test(Reference("mark", "n"), "==", Constants(("A",))),
        Test(Reference("other", "N"), "in", Constants(("A", "XQ"))),
    )


def test_until_may_be_indented_with_the_block() -> None:
    assert block(f"repeat:\n{BODY}  until NO_CHANGE\n") == block(f"repeat:\n{BODY}until NO_CHANGE\n")


def test_repeat_blocks_nest() -> None:
    inner = "".join(f"  {line}\n" for line in f"repeat 3:\n{BODY}until mark[N] == A\n".splitlines())
    outer = block(f"repeat:\n{BODY}{inner}{BODY}until NO_CHANGE\n")
    assert [type(item) for item in outer.body] == [Production, Repeat, Production]


# ----------------------------------------------------------------------------------------------------------- comments


def test_the_closest_comment_becomes_the_productions() -> None:
    program = parse(
        "# the first\n\n// the closest \nwhere mark[n] == A: # not this\n  # nor this\n  mark[N] = A # nor that\n"
        "where mark[n] == A:\n  mark[N] = A\n"
        "# the block\nrepeat:\n  # inside\n" + BODY + "until NO_CHANGE\n# the end"
    )
    first, second, repeat = program.statements
    assert (first.comment, second.comment, repeat.comment) == ("the closest", "", "the block")
    assert isinstance(repeat, Repeat)
    assert repeat.body[0].comment == "inside"


# ---------------------------------------------------------------------------------------------------------- odd files


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: text.replace("\n", "\r"), id="CR"),
        pytest.param(lambda text: text.replace("    ", "\t"), id="tabs"),
        pytest.param(lambda text: text.rstrip("\n"), id="no final newline"),
        pytest.param(lambda text: "\ufeff" + text, id="byte order mark"),
        pytest.param(lambda text: "\n\n  \n" + text + "\n \t \n", id="empty lines around"),
        pytest.param(lambda text: text.replace("\n", "  \t\n"), id="white space at line ends"),
        pytest.param(lambda text: text.replace("\n", "\n# a comment\n").replace("# a comment\n#", "#"), id="comments"),
    ],
)
def test_odd_files_mean_the_same(change) -> None:  # type: ignore[no-untyped-def]
    text = program_text("pargen")
    expected, got = parse_program(text), parse_program(change(text))
    assert [(item.tests, item.assignments) for item in got.productions] == [
        (item.tests, item.assignments) for item in expected.productions
    ]
    assert got.registers == expected.registers


# ------------------------------------------------------------------------------------------------------ syntax errors


@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        ("where mark[n] = A:\n  mark[N] = A", 4, 15, "A test is written with `==`"),
        ("where mark[n] == A:\n  mark[N] == A", 5, 11, "An assignment is written with `=`"),
        ("where mark[n] == A:\n  mark[N] := A", 5, 11, "An assignment is written with `=`"),
        ("where mark[n] == A:\nmark[N] = A", 5, 1, "an indented block"),
        ("where mark[n] == A\n  mark[N] = A", 4, 19, "expected `:`"),
        ("where mark[n] == A, mark[N] == A:\n  mark[N] = A", 4, 19, "joined by `and`"),
        ("where mark[n]@pos_increment == mark[N]:\n mark[N] = A", 4, 15, "swap the sides"),
        ("where mark[n] == A:\n mark[n] = A", 5, 7, "only the cell N is updated"),
        ("where mark[x] == A:\n mark[N] = A", 4, 12, "`x` is no cell"),
        ("where mark[n] == A:\n mark[N] = A@pos_increment", 5, 13, "behind a register that is read"),
        ("where mark[n] == A:\n   mark[N] = A\n  other[N] = A", 6, 3, "fits no block"),
        ("where (mark[n] == A:\n mark[N] = A", 4, 20, "expected `)`"),
        ("watch: [mark", 4, 8, "`[` is never closed"),
        ("wach: [mark]", 4, 1, "Did you mean `watch`?"),
        ("watch: {mark}", 4, 1, "has the form `watch: [...]`"),
        ("watch: true", 4, 1, "has the form `watch: [...]`"),
        ("causal_attn: yes", 4, 1, "`causal_attn: true` or `causal_attn: false`"),
        ("  watch: [mark]", 4, 3, "Only the lines below `where` and `repeat` are indented"),
        ("where mark[n] == A:\n mark[N] = A\nwatch: [mark]", 6, 1, "stands before the first production"),
        ("where mark[n] == A:\n mark[N] = A\nwhatever: [mark]", 6, 1, "is no declaration"),
        ("repeat:\nuntil NO_CHANGE", 5, 1, "an indented block"),
        (f"repeat:\n{BODY}", 6, 15, "expected `until`"),
        (f"repeat:\n{BODY}until NO_CHANGES", 7, 7, "expected `until NO_CHANGE`"),
        ("where mark[n] == 'A:\n mark[N] = A", 4, 18, "not closed on its line"),
        ("where mark[n] == $:\n mark[N] = A", 4, 18, "quote words that are no names"),
        ("where mark[n] == '':\n mark[N] = A", 4, 18, "a value is one word"),
        ("where mark[n] == 'a b':\n mark[N] = A", 4, 18, "a value is one word"),
        ("where mark[n] == '\\d':\n mark[N] = A", 4, 18, "is no escape"),
        ("wher mark[n] == A:\n mark[N] = A", 4, 6, "Did you mean `where`"),
        ("mark[N] = A", 4, 5, "on indented lines below it"),
        ("where in[n] == A:\n mark[N] = A", 4, 7, "a word of the language"),
        ("registers: {new: short}", 4, 18, "quote the value: `new: 'short'`"),
        ("registers: {'new'}", 4, 13, "without quotes"),
        ("constants: {'new': 'x'}", 4, 13, "`name: 'value'`"),
        ("system: {eop}", 4, 10, "needs a value"),
        ("stop: [A: 'x']", 4, 8, "takes no value"),
        ("values: {mark: A}", 4, 10, "`register: [...]`"),
        ("initial: {mark: [A]}", 4, 11, "has no list"),
    ],
)
def test_syntax_errors_name_the_place_and_show_the_line(body: str, line: int, column: int, message: str) -> None:
    with pytest.raises(PSLError) as caught:
        parse_program(HEAD + body, "swap.psl")
    error = caught.value
    assert message in str(error)
    assert (error.line, error.column) == (line, column)
    *_, where, shown, caret = str(error).split("\n")
    assert where == f"  swap.psl, line {line}, column {column}"
    assert shown == "    " + (HEAD + body).split("\n")[line - 1]
    assert caret == "    " + " " * (column - 1) + "^"


def test_the_caret_stands_below_its_character_behind_tabs() -> None:
    with pytest.raises(PSLError) as caught:
        parse("where mark[n] == A:\n\tmark[N] == A\n")
    *_, shown, caret = str(caught.value).split("\n")
    assert (shown, caret) == ("    \tmark[N] == A", "    \t        ^")


@pytest.mark.parametrize(
    ("body", "line", "reason", "mend"),
    [
        ("where mark[n] == Dollar:\n mark[N] = A", 4, "is not declared", "Did you mean `dollar`?"),
        ("where mark[n] == A:\n mark[N] = Zoo", 5, "is not declared", "quote it (`'Zoo'`)"),
        ("where mark[n] in [A, Zoo]:\n mark[N] = A", 4, "is not declared", "constants: {Zoo}"),
        ("where mark[n] == other:\n mark[N] = A", 4, "is a register and stands for no value", "`other[n]`"),
        ("initial: {mark: Zoo}", 4, "is not declared", "constants: {Zoo}"),
        ("constants: {mark}", 4, "as a register and as a constant", "Rename"),
        ("constants: {XQ: 'x'}", 4, "declared twice", "Leave"),
        ("registers: {mark: 'x'}", 4, "declared twice", "Leave"),
        (f"repeat 0:\n{BODY}until NO_CHANGE", 4, "a bound is a number", "repeat 500"),
        (f"repeat -1:\n{BODY}until NO_CHANGE", 4, "a bound is a number", "repeat 500"),
        (f"repeat {'9' * 5000}:\n{BODY}until NO_CHANGE", 4, "a bound is a number", "repeat 500"),
        ("repeat:\n  causal_attn: true\nuntil NO_CHANGE", 4, "has no production", "leave the block out"),
    ],
)
def test_names_that_mean_nothing(body: str, line: int, reason: str, mend: str) -> None:
    with pytest.raises(PSLError) as caught:
        parse(body)
    assert caught.value.line == line
    assert reason in caught.value.reason
    assert mend in caught.value.mend


def test_case_decides_nothing() -> None:
    program = parse_program(
        "registers: {BIG: 'b', small: 's'}\nconstants: {tiny, Large}\nwhere BIG[n] == tiny:\n small[N] = Large"
    )
    (production,) = program.productions
    assert production.tests == (Test(Reference("BIG", "n"), "==", Constants(("tiny",))),)
    assert production.assignments == (Assignment("small", "Large"),)


# --------------------------------------------------------------------------------------------------- depth and speed


def nested(depth: int) -> str:
    lines = ["  " * level + "repeat:" for level in range(depth)]
    lines += ["  " * depth + "where mark[n] == A:", "  " * depth + "  mark[N] = A"]
    lines += ["  " * level + "until NO_CHANGE" for level in reversed(range(depth))]
    return "\n".join(lines)


def test_deep_blocks_are_refused_and_less_deep_ones_read() -> None:
    assert len(list(parse(nested(MAX_NESTING - 1)).productions)) == 1
    with pytest.raises(PSLError, match="nested deeper than 50"):
        parse(nested(MAX_NESTING))
    with pytest.raises(PSLError, match="nested deeper than 50"):
        parse(nested(2_000))


def test_deep_parentheses_are_no_recursion() -> None:
    depth = 5_000
    assert len(conditions("(" * depth + "mark[n] == A" + ")" * depth)) == 1
    with pytest.raises(ProgramsError):
        parse("where " + "(" * depth)


def test_pargen_is_parsed_fast() -> None:
    text = program_text("pargen")
    parse_program(text)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        parse_program(text)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.1


def test_importing_the_package_imports_neither_lark_nor_torch() -> None:
    code = (
        "import sys, types; package = types.ModuleType('hf_mech'); package.__path__ = ['hf_mech'];"
        "sys.modules['hf_mech'] = package; import hf_mech.programs.psl;"
        "print([name for name in ('lark', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
