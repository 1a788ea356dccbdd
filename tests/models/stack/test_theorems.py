"""Theorems 3.1 and 3.2 as properties, for any number of pops in a step."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.stack import stack_attention, stack_attention_reference


class Stack(list):
    """Section 3.1: a stack over positions, by Python's own list."""

    def after(self, operation: int, position: int, multi_pop: int) -> int:
        """Carries one operation out; gives PEEK, 0 for the empty stack (Eq. 15-18)."""
        if operation == 0:
            self.append(position)
        elif operation <= multi_pop:
            for _ in range(operation):
                if self:
                    self.pop()
        return self[-1] if self else 0


@st.composite
def histories(draw):
    """K and the operations of positions 1, 2, ..."""
    multi_pop = draw(st.integers(1, 4))
    return multi_pop, draw(st.lists(st.integers(0, multi_pop + 1), max_size=40))


@settings(max_examples=40)
@given(histories())
def test_theorem_3_1(history):
    """With one-hot actions the stack attention is the one-hot of PEEK."""
    multi_pop, operations = history
    stack = Stack()
    tops = [0] + [stack.after(operation, i, multi_pop) for i, operation in enumerate(operations, start=1)]
    actions = torch.nn.functional.one_hot(torch.tensor([[0, *operations]]), multi_pop + 2).double()
    expected = torch.nn.functional.one_hot(torch.tensor([tops]), len(tops)).double()
    assert torch.equal(stack_attention(actions), expected)
    assert torch.equal(stack_attention_reference(actions), expected)


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 30), st.floats(0, 20), st.integers(0, 2**31))
def test_theorem_3_2(multi_pop, length, hardness, seed):
    """Every stack attention is a distribution over the positions up to its own."""
    logits = torch.randn(2, length, 2 + multi_pop, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    alpha = stack_attention((hardness * logits).softmax(-1))
    torch.testing.assert_close(alpha.sum(-1), torch.ones(2, length, dtype=torch.float64))
    assert (alpha >= 0).all()
    assert not alpha.triu(1).any()
