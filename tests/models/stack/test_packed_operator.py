"""Several sequences in a row: every form of the operator computes each of them as if it were alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from hf_mech.models.stack import (
    StackError,
    stack_attention,
    stack_attention_from_operations,
    stack_attention_reference,
    stack_kernel_cpu,
    stack_kernel_triton,
)
from hf_mech.models.stack.stack_attention import backward_torch, forward_torch

from .tiny_triton import interpreted

Segments = list[tuple[int, bool]]  # the lengths of a row's parts, and whether a part is a sequence or nothing


@pytest.fixture(params=["cpu", "torch", "triton"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The `forward` and `backward` of each kernel; Triton's code is interpreted where there is no GPU."""
    torch_kernel = SimpleNamespace(forward=forward_torch, backward=backward_torch)
    kernels = {"cpu": stack_kernel_cpu, "torch": torch_kernel, "triton": stack_kernel_triton}
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "triton":
            interpreted(stack_kernel_triton, patch)
        yield kernels[request.param]


@st.composite
def packed(draw: st.DrawFn) -> tuple[Tensor, Tensor, list[Segments]]:
    """Actions [batch, N, 2 + K], float64, the starts [batch, N], and the parts of every row."""
    batch, length, pops = draw(st.integers(1, 3)), draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rows = []
    for _ in range(batch):
        cuts = sorted(draw(st.sets(st.integers(1, length - 1)))) if length > 1 else []
        edges = [0, *cuts, length]
        rows.append([(b - a, draw(st.booleans()) or draw(st.booleans())) for a, b in pairwise(edges)])
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    hardness = draw(st.sampled_from([1.0, 30.0]))
    actions = (hardness * torch.randn(batch, length, 2 + pops, generator=generator, dtype=torch.float64)).softmax(-1)
    return actions, torch.stack([starts_of(row, length) for row in rows]), rows


def starts_of(row: Segments, length: int) -> Tensor:
    starts, done = [], 0
    for size, sequence in row:
        starts += [done if sequence else length + 3] * size  # any number after itself: it belongs to no sequence
        done += size
    return torch.tensor(starts)


def alone(function: Any, actions: Tensor, rows: list[Segments]) -> Tensor:
    """alpha [batch, N, N] with each sequence computed alone by `function`."""
    batch, length, _ = actions.shape
    alphas = []
    for b, row in enumerate(rows):
        done, blocks = 0, []
        for size, sequence in row:
            part = actions[b : b + 1, done : done + size]
            blocks.append(function(part)[0] if sequence else part.new_zeros(size, size))
            done += size
        alphas.append(torch.block_diag(*blocks))
    return torch.stack(alphas).reshape(batch, length, length)


def with_gradient(function: Any, actions: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    actions = actions.clone().requires_grad_()
    alpha = function(actions) + 0 * actions.sum()  # a sequence of one position has no gradient
    return alpha.detach(), torch.autograd.grad(alpha, actions, upstream)[0]


@settings(max_examples=25)
@given(packed())
def test_the_reference_is_each_sequence_alone(given: tuple[Tensor, Tensor, list[Segments]]):
    actions, starts, rows = given
    upstream = torch.randn(actions.shape[0], actions.shape[1], actions.shape[1], dtype=torch.float64)
    whole = with_gradient(lambda a: stack_attention_reference(a, start=starts), actions, upstream)
    apart = with_gradient(lambda a: alone(stack_attention_reference, a, rows), actions, upstream)
    assert_close(whole, apart, rtol=0, atol=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(packed())
def test_every_kernel_is_the_reference(kernel: Any, given: tuple[Tensor, Tensor, list[Segments]]):
    """Values and gradients."""
    actions, starts, _ = given
    length = actions.shape[1]
    upstream = torch.randn(actions.shape[0], length, length, dtype=torch.float64)
    expected = with_gradient(lambda a: stack_attention_reference(a, start=starts), actions, upstream)
    alpha = kernel.forward(actions, starts)
    assert_close((alpha, kernel.backward(upstream, actions, alpha, starts)), expected, rtol=0, atol=1e-12)


@settings(max_examples=25)
@given(packed())
def test_the_operator_with_its_checks(given: tuple[Tensor, Tensor, list[Segments]]):
    actions, starts, _ = given
    assert_close(stack_attention(actions, start=starts), stack_attention_reference(actions, start=starts))


@settings(max_examples=25)
@given(packed())
def test_given_operations_all_at_once(given: tuple[Tensor, Tensor, list[Segments]]):
    actions, starts, _ = given
    kinds = actions.shape[-1]
    operations = actions.argmax(-1)
    alpha = stack_attention_from_operations(operations, multi_pop=kinds - 2, start=starts, dtype=torch.float64)
    hard = torch.nn.functional.one_hot(operations, kinds).double()
    assert torch.equal(alpha, stack_attention_reference(hard, start=starts))


def test_the_gradient_is_the_derivative():
    actions = torch.randn(2, 6, 4, dtype=torch.float64).softmax(-1).requires_grad_()
    starts = torch.tensor([[0, 0, 2, 2, 2, 5], [1, 1, 1, 3, 3, 3]])
    assert torch.autograd.gradcheck(lambda a: stack_attention(a, start=starts, validate=False), (actions,))


@pytest.mark.slow
def test_compiles_as_one_graph():
    starts = torch.tensor([[0, 0, 2, 2, 2, 5], [1, 1, 1, 3, 3, 3]])

    def loss(actions: Tensor) -> Tensor:
        return stack_attention(actions, start=starts).square().sum()

    actions = torch.randn(2, 6, 3).softmax(-1).requires_grad_()
    (fast,) = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend="aot_eager")(actions), actions)
    (slow,) = torch.autograd.grad(loss(actions), actions)
    assert_close(fast, slow)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_take_sequences(threads: int):
    actions, starts = torch.randn(1, 40, 3).softmax(-1), torch.arange(40)[None] // 8 * 8
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert_close(stack_attention(actions, start=starts), stack_attention_reference(actions, start=starts))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ([[0, 0, 1, 1], [0, 0, 0, 0]], r"row 0, position 2 has 1 and the position before it 0"),
        ([[0, 0, 2, 2], [0, 1, 1, 0]], r"row 1, position 3 has 0 and the position before it 1"),
        ([[0, 0, 2], [0, 1, 1]], r"each of the \[2, 4\] positions; it is \[2, 3\]"),
    ],
)
def test_starts_that_divide_a_sequence(start: list[list[int]], says: str):
    with pytest.raises(StackError, match=says):
        stack_attention(torch.rand(2, 4, 3).softmax(-1), start=torch.tensor(start))


@pytest.mark.gpu
@pytest.mark.parametrize("pops", [1, 3])
def test_on_a_gpu(pops: int):
    actions = torch.randn(2, 40, 2 + pops, dtype=torch.float64).softmax(-1)
    starts = torch.stack([torch.arange(40) // 8 * 8, (torch.arange(40) // 13 * 13).clamp(min=2)])
    upstream = torch.randn(2, 40, 40, dtype=torch.float64)
    expected = with_gradient(lambda a: stack_attention_reference(a, start=starts), actions, upstream)
    found = with_gradient(lambda a: stack_attention(a, start=starts), actions.cuda(), upstream.cuda())
    assert_close(tuple(t.cpu() for t in found), expected, rtol=0, atol=1e-12)
