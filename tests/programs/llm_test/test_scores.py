"""Right and wrong replies, and the constituents that a reply has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.probing.language_models import Reply
from hf_mech.programs.llm_test.report import judge
from hf_mech.programs.templatic.grammar import Prompt, Template

TEMPLATE = Template((0, ("~",), 1, ("+",), 2), (2, ("|",), 0, ("_",), 1, (".",)))
PROMPT = Prompt(TEMPLATE, ((("aa",), ("bb",), ("cc",)),), (("k", "l"), ("m",), ("n", "o", "p")))


@pytest.mark.parametrize(
    ("reply", "correct", "constituents_right"),
    [
        ("n o p | k l _ m .", True, 3),
        (" n o p |\nk l _  m . ", True, 3),
        ("n o p | k l _ m", False, 3),  # the full stop is missing
        ("n o p | k l _ m. ", False, 2),
        ("k l | n o p _ m .", False, 2),  # two in another order
        ("n o | k l _ m .", False, 2),
        ("m _ k l | n o p .", False, 1),
        ("The answer is: n o p | k l _ m .", False, 3),
        ("N O P | K L _ M .", False, 0),
        ("", False, 0),
    ],
)
def test_what_is_right_and_how_much_of_it(reply, correct, constituents_right):
    record = judge(0, PROMPT, Reply(reply))
    assert PROMPT.completion == "n o p | k l _ m ."
    assert (record.correct, record.constituents_right) == (correct, constituents_right)
    assert (record.con_count, record.con_length, record.constituents) == (3, 3, 3)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["k", "l", "m", "n", "o", "p", "|"]), max_size=9))
def test_constituents_right_is_the_most_that_any_choice_has(said):
    """Against trying every set of the constituents, each found at its first place behind the one before."""
    wanted = [("n", "o", "p"), ("k", "l"), ("m",)]
    best = 0
    for chosen in range(8):
        at, found = 0, 0
        for value in (value for bit, value in enumerate(wanted) if chosen >> bit & 1):
            places = [i for i in range(at, len(said)) if tuple(said[i : i + len(value)]) == value]
            if not places:
                break
            at, found = places[0] + len(value), found + 1
        best = max(best, found)
    assert judge(0, PROMPT, Reply(" ".join(said))).constituents_right == best
