"""Templates and prompts: what is one, their text, and the way back from the text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import Prompt, Template
from hf_mech.programs.templatic.parse import parse, regions
from tests.programs.templatic.regex_solver import solve

SWAP = Template((0, ("V",), 1), (1, ("V",), 0, (".",)))


@st.composite
def prompts(draw):
    """Prompts that keep to App. D, more of them than the data set has: delimiters that begin a region, no delimiter
    in an answer, words as delimiters."""
    count = draw(st.integers(1, 4))

    def delimiters(number, optional):
        kinds = st.lists(st.sampled_from(optional), min_size=number, max_size=number)
        runs = iter(draw(st.permutations([f"d{i}" for i in range(20)])))
        sizes = [draw(st.integers(1, 2)) if wanted else 0 for wanted in draw(kinds)]
        return [tuple(next(runs) for _ in range(size)) for size in sizes]

    ends = [*delimiters(2, [False, True])]
    between = delimiters(count - 1, [True])
    between = [tuple(f"m{s}" for s in run) for run in between]
    question = [ends[0], *(x for i in range(count) for x in ((i,) if i == 0 else (between[i - 1], i))), ends[1]]
    used = draw(st.lists(st.sampled_from(range(count)), unique=True, max_size=count))
    around = delimiters(len(used) + 1, [False, True])
    answer = [around[0], *(x for i, run in zip(used, around[1:], strict=True) for x in (i, run))]
    if not used and not around[0]:
        answer = [("d0",)]
    template = Template(tuple(f for f in question if f != ()), tuple(f for f in answer if f != ()))
    shots = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 3)) for _ in range((shots + 1) * count)]
    symbols = iter(range(sum(sizes)))
    values = [tuple(f"w{next(symbols)}" for _ in range(size)) for size in sizes]
    parts = [tuple(values[i : i + count]) for i in range(0, len(values), count)]
    return Prompt(template, tuple(parts[:-1]), parts[-1])


@given(prompts())
def test_the_text_says_all_of_the_prompt(prompt):
    assert parse(prompt.text) == prompt
    assert parse(f"  {prompt.text}\n".replace(" ", "\t ")) == prompt
    assert solve(prompt.text) == prompt.completion


def test_a_template_reads_as_in_the_paper():
    template = Template((0, ("`", "?"), 1), (1, ("=", ".")))  # Sec. 4.2.1
    assert str(template) == "Q <1> ` ? <2> A <2> = ."
    assert template.count == 2
    assert str(SWAP) == "Q <1> V <2> A <2> V <1> ."  # (28)


def test_the_regions_of_swap():
    """(29), with the full stop of Sec. 7.2.4."""
    examples, cue = regions("Q B C V D E A D E V B C . Q F G V J K L A")
    assert examples == ((("B", "C", "V", "D", "E"), ("D", "E", "V", "B", "C", ".")),)
    assert cue == ("F", "G", "V", "J", "K", "L")


def test_a_constituent_may_be_left_out_or_come_again():
    assert Template((0, ("-",), 1), (1,)).complete([["a"], ["b", "c"]]) == "b c"
    assert Template((("twice",), 0), (0, 0)).complete([["a", "b"]]) == "a b a b"


@pytest.mark.parametrize(
    ("question", "answer", "message"),
    [
        ((), (0,), "question of a template must have at least one field"),
        ((0,), (), "answer of a template must have at least one field"),
        ((0, ()), (0,), "delimiter must have at least one symbol"),
        ((0, ("a",), ("b",)), (0,), r"Two delimiters in a row.*question \(0, \('a',\), \('b',\)\)"),
        ((1, ("a",), 0), (0,), r"must be 0, 1, 2, .*got \[1, 0\]"),
        ((0, ("a",), 0), (0,), r"must be 0, 1, 2, .*got \[0, 0\]"),
        ((0, 1), (0,), "need a delimiter between them"),
        ((0,), (1,), r"must be the question's \(32d-i\), \[0\], got \[1\]"),
    ],
)
def test_what_is_no_template_is_refused(question, answer, message):
    with pytest.raises(ProgramsError, match=message):
        Template(question, answer)


@pytest.mark.parametrize("values", [[], [["a"]], [["a"], []], [["a"], ["b"], ["c"]]])
def test_values_that_do_not_fit_are_refused(values):
    for fill in (SWAP.ask, SWAP.complete):
        with pytest.raises(ProgramsError, match="Each of the 2 constituents needs at least one symbol"):
            fill(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with 'Q', got no symbol"),
        ("a b", "begins with 'Q', got 'a b'"),
        ("Q a A a . Q b", "ends with a cue.*got the end 'A a . Q b'"),
        ("Q a A a . Q b A b .", r"ends with a cue.*Leave out the answer"),
        ("Q a A", "at least one example before its cue"),
        ("Q a A A", "'A' twice by symbol 4"),
        ("Q a Q b A", "'Q' twice by symbol 3"),
        ("Q A a . Q b A", "Nothing comes after the 'Q' that is symbol 1"),
        ("Q a A Q b A", "Nothing comes after the 'A' that is symbol 3"),
        ("Q a A a . Q A", "Nothing comes after the 'Q' that is symbol 6"),
        ("Q a - b A b . Q - c d A", "cue's delimiters in the cue's order: '<1> - <2>', and the cue has '- <1>'"),
        ("Q a - b A b . Q b - c A", "cue's delimiters in the cue's order"),
        ("Q a b - c A b . Q d - e A", "'b' of a constituent and not all"),
        ("Q a A a . Q b A b ! Q c A", "Example 1 follows 'Q <1> A <1> .', and example 2 'Q <1> A <1> !'"),
    ],
)
def test_what_is_no_prompt_is_refused(text, message):
    with pytest.raises(ProgramsError, match=message):
        parse(text)


@given(prompts(), st.data())
def test_a_spoilt_prompt_is_read_or_refused_by_a_typed_error(prompt, data):
    symbols = prompt.text.split()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(symbols)))
        symbols[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from([*symbols, "Q", "A", "?"]), max_size=2)
        )
        symbols = symbols or ["Q"]
    with contextlib.suppress(ProgramsError):
        assert isinstance(parse(" ".join(symbols)).completion, str)
