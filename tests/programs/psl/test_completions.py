"""Completions of a batch: the words of each, and whether it ended by itself."""

from __future__ import annotations

import pytest

from hf_mech.models.dat import DATLengthError
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl import compile_program
from hf_mech.programs.psl.library import Completion, complete_batch

ECHO_NEXT = """
registers: {symbol: 's', position: 'p', after: 'x'}
system: {symbol: symbol, position: position, output: after}
stop: ["."]
where_rm position[n] == position[N]@pos_decrement:
    after[N] = symbol[n]
"""
"""Says the word before the last one: two words in turn, until one is the stop word. Of a single word it says nil."""


@pytest.fixture(scope="module")
def network():
    return compile_program(ECHO_NEXT, max_position_embeddings=12, num_open_values=20)


def test_words_and_whether_a_stop_word_or_nil_ended_them(network):
    model, tokenizer = network
    found = list(complete_batch(model, tokenizer, ["a b", ". c", "d"], 3))
    assert found == [Completion(("a", "b", "a"), ended=False), Completion((), True), Completion((), True)]
    assert [completion.text for completion in found] == ["a b a", "", ""]


def test_prompts_before_one_that_fails_are_completed(network):
    model, tokenizer = network
    completions = complete_batch(model, tokenizer, ["a b", "c " * 13, "d"], 2)
    assert next(completions).words == ("a", "b")
    with pytest.raises(DATLengthError):
        next(completions)


def test_a_prompt_without_a_word_is_refused_before_any_runs(network):
    with pytest.raises(ProgramsError):
        next(complete_batch(*network, ["a b", " "], 2))
