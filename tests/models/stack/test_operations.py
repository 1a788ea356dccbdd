"""Given operations, all positions at once, and what they say in words."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.stack import (
    StackError,
    most_probable_operations,
    operations_as_text,
    stack_attention,
    stack_attention_from_operations,
    stack_attention_reference,
    stacks_of,
)


@st.composite
def batches(draw):
    """K, operations [batch, N] and the start of every row."""
    multi_pop, batch, length = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 25))
    row = st.lists(st.integers(0, multi_pop + 1), min_size=length, max_size=length)
    operations = torch.tensor(draw(st.lists(row, min_size=batch, max_size=batch)))
    start = torch.tensor(draw(st.lists(st.integers(0, length), min_size=batch, max_size=batch)))
    return multi_pop, operations, start


@settings(max_examples=40)
@given(batches(), st.booleans())
def test_given_operations_equal_the_recursion(example, padded):
    multi_pop, operations, start = example
    actions = torch.nn.functional.one_hot(operations, multi_pop + 2).float()
    given_start = start if padded else None
    alpha = stack_attention_from_operations(operations, multi_pop=multi_pop, start=given_start)
    assert torch.equal(alpha, stack_attention(actions, start=given_start))
    assert torch.equal(alpha, stack_attention_reference(actions, start=given_start))
    assert torch.equal(most_probable_operations(actions), operations)


@settings(max_examples=40)
@given(batches())
def test_the_top_of_the_stack_is_where_the_attention_looks(example):
    multi_pop, operations, start = example
    alpha = stack_attention_from_operations(operations, multi_pop=multi_pop, start=start)
    for row, begin, stacked in zip(operations, start.tolist(), alpha, strict=True):
        stacks = stacks_of(row, multi_pop, start=begin)
        for i in range(begin, len(row)):
            top = stacks[i][-1] if stacks[i] else begin
            assert stacked[i].argmax() == top


def test_figure_1_in_words():
    operations = torch.tensor([2, 0, 0, 0, 1, 2, 1])
    text = operations_as_text(operations, ["[BOS]", "a", "b", "c", "d", "e", "f"])
    assert text == "push a · push b · push c · pop · no-op · pop"
    assert stacks_of(operations) == [[], [1], [1, 2], [1, 2, 3], [1, 2], [1, 2], [1]]


def test_several_pops_and_padding():
    operations = [3, 3, 0, 0, 2, 1, 0]
    text = operations_as_text(operations, ["", "[BOS]", *"abcde"], multi_pop=2, start=1)
    assert text == "push a · push b · pop 2 · pop · push e"
    assert stacks_of(operations, 2, start=1) == [[], [], [2], [2, 3], [], [], [6]]


def test_what_it_gives():
    alpha = stack_attention_from_operations(torch.tensor([[0, 0, 1]]), dtype=torch.bfloat16)
    assert alpha.dtype == torch.bfloat16
    assert stack_attention_from_operations(torch.tensor([[0, 0, 1]])).dtype == torch.get_default_dtype()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stack_attention_from_operations(torch.tensor([[0, 3]])), r"0 \(push\), 1 to 1 \(pop\).*there is 3"),
        (lambda: stack_attention_from_operations(torch.tensor([[-1]])), "there is -1"),
        (lambda: stack_attention_from_operations(torch.tensor([0])), r"\[batch, N\].*\[1\]"),
        (lambda: stack_attention_from_operations(torch.zeros(1, 0, dtype=torch.long)), "N at least 1"),
        (lambda: stack_attention_from_operations(torch.zeros(1, 2)), "integers, not torch.float32"),
        (lambda: stack_attention_from_operations(torch.tensor([[0]]), multi_pop=0), "multi_pop must be at least 1"),
        (lambda: most_probable_operations(torch.zeros(2, 3)), r"\[2, 3\]"),
        (lambda: most_probable_operations(torch.zeros(1, 2, 2)), r"\[1, 2, 2\]"),
        (lambda: operations_as_text([0, 1], ["a"]), "each of the 2 positions; there are 1"),
        (lambda: operations_as_text([0, 7], ["a", "b"]), "there is 7"),
        (lambda: stacks_of(torch.tensor([[0, 1]])), "one row"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(StackError, match=message):
        call()
