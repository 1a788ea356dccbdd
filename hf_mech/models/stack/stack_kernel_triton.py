# mypy: disable-error-code="import-not-found"
"""The recursion of stack attention (Eq. 19-24) in Triton, forward and backward: one program for a sequence.

A program processes the positions in order, and counts them from the sequence's position 0. The threads of a program
read rows that other threads wrote at the previous position, hence the barriers. Rows of alpha are read in tiles
[TILE, BLOCK], BLOCK >= N; `work` holds a row's vectors.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # a checkpoint's code must load where Triton is missing
    triton = None

LONGEST = 2048  # a row of alpha has to fit in the registers of a program
available = triton is not None


def _helper(function):
    return function if triton is None else triton.jit(function)


def _kernel(function):
    """Compiles once for all lengths of about the same size, not once for each."""
    return function if triton is None else triton.jit(function, do_not_specialize=["N"])


@_helper
def _pop(state, out, alpha, i, N, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """out[:i] = state T (Eq. 22) for vectors in memory; returns it too, [BLOCK], zero from i on."""
    n = tl.arange(0, BLOCK)
    total = tl.where(n == 0, tl.load(state + n, n < i, 0), 0)
    for low in range(1, i, TILE):
        j = low + tl.arange(0, TILE)
        weight = tl.load(state + j, j < i, 0)
        rows = tl.load(alpha + (j[:, None] - 1) * N + n[None, :], (j[:, None] < i) & (n[None, :] < j[:, None]), 0)
        total += tl.sum(weight[:, None] * rows, 0)
    tl.store(out + n, total, n < i)
    tl.debug_barrier()
    return total


@_helper
def _unpop(sent, share, state, out, grad, alpha, i, N, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """out[:i] = T sent, sent [BLOCK], and the gradient of T: grad row j - 1 += share state[j] sent. Returns T sent."""
    n = tl.arange(0, BLOCK)
    for low in range(0, i, TILE):
        j = low + tl.arange(0, TILE)
        inside = (j[:, None] > 0) & (j[:, None] < i) & (n[None, :] < j[:, None])
        places = (j[:, None] - 1) * N + n[None, :]
        rows = tl.load(alpha + places, inside, 0)
        back = tl.sum(rows * sent[None, :], 1) + tl.sum(tl.where((n == j[:, None]) & (n == 0), sent[None, :], 0), 1)
        tl.store(out + j, back, j < i)
        weight = share * tl.load(state + j, j < i, 0)
        tl.store(grad + places, tl.load(grad + places, inside, 0) + weight[:, None] * sent[None, :], inside)
    tl.debug_barrier()
    return tl.load(out + n, n < i, 0)


@_helper
def _sequence(starts, N, SEVERAL: tl.constexpr, BLOCK: tl.constexpr):
    """A program's sequence: the column of its position 0, and that after its last; the same if it has none.

    starts is [batch, 1]; or [batch, N] for several sequences in a row. A program then stands for a position and has a
    sequence if it is the first position of it.
    """
    c = tl.program_id(1)
    end = N
    if SEVERAL:
        starts += tl.program_id(0) * N
        begin = tl.load(starts + c)
        m = tl.arange(0, BLOCK)
        others = tl.load(starts + m, m < N, -1)
        end = tl.min(tl.where((m > c) & (others != begin), m, N), 0)
        end *= 1 - tl.sum(tl.where((m == c - 1) & (others == begin), 1, 0), 0)
    else:
        begin = tl.load(starts + tl.program_id(0))
    return begin, tl.maximum(end, begin)


@_kernel
def _forward(
    actions,
    starts,
    alpha,
    work,
    N,
    POPS: tl.constexpr,
    SEVERAL: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Fills alpha [batch, N, N]; work [batch, POPS, N]."""
    b = tl.program_id(0).to(tl.int64)
    begin, end = _sequence(starts, N, SEVERAL, BLOCK)
    alpha += b * N * N + begin * (N + 1)
    actions += (b * N + begin) * (POPS + 2)
    work += b * POPS * N + begin
    n = tl.arange(0, BLOCK)
    tl.store(alpha + n, tl.where(n == 0, 1, 0), n < tl.minimum(end - begin, 1))
    tl.debug_barrier()
    for i in range(1, end - begin):
        action = actions + i * (POPS + 2)
        state = alpha + (i - 1) * N
        row = tl.load(action + POPS + 1) * tl.load(state + n, n < i, 0)
        for k in tl.static_range(POPS):
            out = work + k * N
            row += tl.load(action + k + 1) * _pop(state, out, alpha, i, N, BLOCK, TILE)
            state = out
        row = tl.where(n == i, tl.load(action), row)
        tl.store(alpha + i * N + n, row, n <= i)
        tl.debug_barrier()


@_kernel
def _backward(
    grad,
    actions,
    starts,
    alpha,
    work,
    result,
    N,
    POPS: tl.constexpr,
    SEVERAL: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Fills result, the gradient of the actions; overwrites grad [batch, N, N]; work [batch, POPS + 1, N]."""
    b = tl.program_id(0).to(tl.int64)
    begin, end = _sequence(starts, N, SEVERAL, BLOCK)
    alpha += b * N * N + begin * (N + 1)
    grad += b * N * N + begin * (N + 1)
    actions += (b * N + begin) * (POPS + 2)
    result += (b * N + begin) * (POPS + 2)
    work += b * (POPS + 1) * N + begin
    carry = work + POPS * N
    n = tl.arange(0, BLOCK)
    length = end - begin
    for step in range(1, length):
        i = length - step
        action = actions + i * (POPS + 2)
        to = result + i * (POPS + 2)
        own = tl.load(grad + i * N + n, n <= i, 0)
        tl.store(to, tl.sum(tl.where(n == i, own, 0), 0))
        own = tl.where(n < i, own, 0)
        q = alpha + (i - 1) * N
        last = q  # v_{POPS - 1}
        for k in tl.static_range(POPS - 1):  # v_{k + 1} = v_k T
            _pop(last, work + k * N, alpha, i, N, BLOCK, TILE)
            last = work + k * N
        share = tl.load(action + POPS)
        back = _unpop(own, share, last, carry, grad, alpha, i, N, BLOCK, TILE)
        tl.store(to + POPS + 1, tl.sum(own * tl.load(q + n, n < i, 0), 0))
        tl.store(to + 1, tl.sum(back * tl.load(q + n, n < i, 0), 0))  # <G_i, v_k> = <T G_i, v_{k-1}>
        for k in tl.static_range(POPS - 1):
            tl.store(to + k + 2, tl.sum(back * tl.load(work + k * N + n, n < i, 0), 0))
        back = share * back
        for m in tl.static_range(POPS - 1):
            # k = POPS - 1 - m; u_k is the gradient of v_k, and v_{k-1} its row of weights.
            sent = tl.load(action + POPS - 1 - m) * own + back
            tl.debug_barrier()
            before = q
            if POPS - 1 - m > 1:
                before = work + (POPS - 3 - m) * N
            back = _unpop(sent, 1.0, before, carry, grad, alpha, i, N, BLOCK, TILE)
        place = grad + (i - 1) * N + n
        tl.store(place, tl.load(place, n < i, 0) + tl.load(action + POPS + 1) * own + back, n < i)
        tl.debug_barrier()


def forward(actions: Tensor, start: Tensor | None) -> Tensor:
    """alpha [batch, N, N] from actions [batch, N, 2 + K]; the arguments are those of `stack_attention`."""
    batch, length, kinds = actions.shape
    alpha = actions.new_zeros(batch, length, length)
    work = actions.new_empty(batch, kinds - 2, length)
    starts = _starts(start, actions)
    given = actions.contiguous(), starts, alpha, work
    with torch.cuda.device_of(alpha):
        _forward[tuple(starts.shape)](*given, length, **_sizes(alpha, kinds, start))
    return alpha


def backward(grad_alpha: Tensor, actions: Tensor, alpha: Tensor, start: Tensor | None) -> Tensor:
    """The gradient of the actions, in their shape. Besides alpha it needs one buffer [batch, N, N]."""
    batch, length, kinds = actions.shape
    grad = grad_alpha.clone(memory_format=torch.contiguous_format)
    result = torch.zeros_like(actions, memory_format=torch.contiguous_format)
    work = actions.new_empty(batch, kinds - 1, length)
    starts = _starts(start, actions)
    given = grad, actions.contiguous(), starts, alpha.contiguous(), work, result
    with torch.cuda.device_of(alpha):
        _backward[tuple(starts.shape)](*given, length, **_sizes(alpha, kinds, start))
    return result


def _starts(start: Tensor | None, actions: Tensor) -> Tensor:
    """[batch, 1], or [batch, N] where rows hold several sequences."""
    if start is None:
        return torch.zeros(actions.shape[0], 1, dtype=torch.int32, device=actions.device)
    start = start.to(actions.device, torch.int32).clamp(min=0).contiguous()
    return start if start.dim() == 2 else start[:, None]


def _sizes(alpha: Tensor, kinds: int, start: Tensor | None) -> dict[str, int]:
    block = max(16, triton.next_power_of_2(alpha.shape[1]))
    tile = max(2, min(32, 8192 // block))
    several = start is not None and start.dim() == 2
    warps = 4 if block < 256 else 8
    return {"POPS": kinds - 2, "SEVERAL": several, "BLOCK": block, "TILE": tile, "num_warps": warps}
