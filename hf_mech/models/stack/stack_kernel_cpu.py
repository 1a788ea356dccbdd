"""The recursion of stack attention (Eq. 19-24) as compiled loops for the CPU, forward and backward.

With T the matrix of rows T[0] = e_0, T[j] = alpha_{j-1}, a pop is q -> q T (Eq. 22). Both directions are sums of
weighted rows and dot products with rows, four rows at a time. numba is optional: without it `available` is False.

The loops go over sequences, whose positions they count from 0.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

try:
    from numba import njit
except ImportError:  # a checkpoint's code must load where numba is missing
    njit = None

available = njit is not None


def compiled(function):
    """The function compiled by numba, without the interpreter lock; sums may be reordered, for vectorisation."""
    if njit is None:
        return function
    options = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # no writable folder for the cache: compile in every process
        return njit(function, **options)


@compiled
def _add_rows(out, rows, index, weight, count, width):
    """out[:width] += sum over c < count of weight[c] rows[index[c], :width]; rows are lower triangular.

    `index` is increasing. Up to the next multiple of four, `weight` is zero and `index` is valid.
    """
    for c in range(0, count, 4):
        w0, w1, w2, w3 = weight[c], weight[c + 1], weight[c + 2], weight[c + 3]
        r0, r1, r2, r3 = rows[index[c]], rows[index[c + 1]], rows[index[c + 2]], rows[index[c + 3]]
        for n in range(min(width, index[min(c + 3, count - 1)] + 1)):
            out[n] += w0 * r0[n] + w1 * r1[n] + w2 * r2[n] + w3 * r3[n]


@compiled
def _pop(out, q, alpha, i, tiny, index, weight):
    """out = q T for the q of position i - 1: Eq. 22. Weights up to `tiny` are skipped."""
    count = 0
    for j in range(1, i):
        index[count], weight[count] = j - 1, q[j]  # the next one overwrites it unless it counts: no branch
        count += not q[j] <= tiny
    for c in range(count, count + 3):
        index[c], weight[c] = 0, 0
    for n in range(i):
        out[n] = 0
    out[0] = q[0]
    _add_rows(out, alpha, index, weight, count, i)


@compiled
def _unpop(out, g, alpha, i):
    """out = T g for the g of position i, the transpose of `_pop`."""
    out[0] = g[0]
    j = 1
    while j + 4 <= i:
        r0, r1, r2, r3 = alpha[j - 1], alpha[j], alpha[j + 1], alpha[j + 2]
        s0 = s1 = s2 = s3 = out.dtype.type(0)
        for n in range(j + 3):
            s0 += g[n] * r0[n]
            s1 += g[n] * r1[n]
            s2 += g[n] * r2[n]
            s3 += g[n] * r3[n]
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < i:
        out[j] = _dot(g, alpha[j - 1], j)
        j += 1


@compiled
def _dot(a, b, width):
    total = a.dtype.type(0)
    for n in range(width):
        total += a[n] * b[n]
    return total


@compiled
def _block(alpha, b, begin, end):
    """alpha[b, begin:end, begin:end] with rows that follow each other in memory: a copy, unless begin is 0."""
    if begin == 0:
        return alpha[b]
    block = np.empty((end - begin, end - begin), alpha.dtype)
    block[:] = alpha[b, begin:end, begin:end]
    return block


@compiled
def _forward(actions, sequences, alpha, tiny, low, high):
    """Fills the rows of the sequences low to high in alpha [batch, N, N].

    actions [batch, N, 2 + K] in the order push, pop 1, ..., pop K, no-op; sequences as of `_sequences`.
    """
    length = alpha.shape[1]
    pops = actions.shape[2] - 2
    index = np.empty(length + 4, np.int64)
    weight = np.empty(length + 4, alpha.dtype)
    popped = np.empty((2, length), alpha.dtype)
    for s in range(low, high):
        b, begin, end = sequences[s]
        own = _block(alpha, b, begin, end)
        own[0, 0] = 1
        for i in range(1, end - begin):
            action = actions[b, begin + i]
            row, q = own[i], own[i - 1]
            share = action[pops + 1]
            for n in range(i):
                row[n] = share * q[n]
            for k in range(pops):
                out = popped[k % 2]
                _pop(out, q, own, i, tiny, index, weight)
                share = action[k + 1]
                for n in range(i):
                    row[n] += share * out[n]
                q = out
            for n in range(i):
                if row[n] <= tiny:
                    row[n] = 0
            row[i] = action[0]
        if begin > 0:
            alpha[b, begin:end, begin:end] = own


@compiled
def _backward(grad_alpha, actions, sequences, alpha, tiny, grad_actions, low, high):
    """Fills grad_actions [batch, N, 2 + K] for the sequences low to high.

    Row j of T holds alpha_{j-1}, whose gradient is the sum over the later positions i and the pops k of
    v_{k-1}[j] u_k, with v_k = alpha_{i-1} T^k and u_k = a_popk G_i + T u_{k+1}. Both are stored for one sequence at a
    time, and a row of G is summed when its position is processed.
    """
    longest = 0
    for s in range(low, high):
        longest = max(longest, sequences[s, 2] - sequences[s, 1])
    pops = actions.shape[2] - 2
    index = np.empty(longest + 4, np.int64)
    weight = np.empty(longest + 4, alpha.dtype)
    grad = np.empty(longest, alpha.dtype)  # G_i
    back = np.empty(longest, alpha.dtype)
    passed = np.empty(longest, alpha.dtype)  # the gradient of alpha_i from position i + 1, as its no-op and its q
    sent = np.empty((pops, longest, longest), alpha.dtype)  # u_1, ..., u_K of every position
    stacks = np.empty((pops - 1, longest, longest), alpha.dtype)  # v_1, ..., v_{K-1}; v_0 is a row of alpha
    for s in range(low, high):
        b, begin, end = sequences[s]
        own, length = _block(alpha, b, begin, end), end - begin
        passed[:] = 0
        for i in range(length - 1, 0, -1):
            action, result = actions[b, begin + i], grad_actions[b, begin + i]
            upstream, q = grad_alpha[b, begin + i, begin:], own[i - 1]
            for n in range(i + 1):
                grad[n] = upstream[n] + passed[n]
            for k in range(pops):
                count = 0
                for later in range(i + 2, length):
                    w = own[later - 1, i + 1] if k == 0 else stacks[k - 1, later, i + 1]
                    index[count], weight[count] = later, w
                    count += not w <= tiny
                for c in range(count, count + 3):
                    index[c], weight[c] = length - 1, 0
                _add_rows(grad, sent[k], index, weight, count, i + 1)

            for k in range(1, pops):
                _pop(stacks[k - 1, i], q if k == 1 else stacks[k - 2, i], own, i, tiny, index, weight)
            _unpop(back, grad, own, i)
            result[0] = grad[i]
            for k in range(pops):  # <G_i, v_k> = <T G_i, v_{k-1}>
                result[k + 1] = _dot(back, q if k == 0 else stacks[k - 1, i], i)
            result[pops + 1] = _dot(grad, q, i)

            share = action[pops]
            for n in range(i):
                back[n] *= share  # T u_K
            for n in range(i):
                sent[pops - 1, i, n] = share * grad[n]
            for k in range(pops - 2, -1, -1):
                out = sent[k, i]
                share = action[k + 1]
                for n in range(i):
                    out[n] = share * grad[n] + back[n]
                _unpop(back, out, own, i)
            share = action[pops + 1]
            for n in range(i):
                passed[n] = share * grad[n] + back[n]
            passed[i] = 0


def forward(actions: Tensor, start: Tensor | None) -> Tensor:
    """alpha [batch, N, N] from actions [batch, N, 2 + K], float32 or float64, as in `stack_attention`."""
    batch, length, _ = actions.shape
    alpha = actions.new_zeros(batch, length, length)
    sequences = _sequences(start, batch, length)
    given = (_array(actions), sequences, alpha.numpy(), _tiny(alpha))
    _share(lambda low, high: _forward(*given, low, high), len(sequences))
    return alpha


def backward(grad_alpha: Tensor, actions: Tensor, alpha: Tensor, start: Tensor | None) -> Tensor:
    """The gradient of the actions, in their shape."""
    batch, length, _ = actions.shape
    grad_actions = torch.zeros_like(actions, memory_format=torch.contiguous_format)
    sequences = _sequences(start, batch, length)
    given = (_array(grad_alpha), _array(actions), sequences, _array(alpha))
    _share(lambda low, high: _backward(*given, _tiny(alpha), grad_actions.numpy(), low, high), len(sequences))
    return grad_actions


def _sequences(start, batch, length):
    """The sequences, [sequences, 3]: the row, the column of position 0, the column after the last."""
    starts = np.zeros(batch, np.int64) if start is None else start.detach().to("cpu", torch.long).numpy()
    starts = starts.clip(0)  # the loops check no bounds
    if starts.ndim == 1:
        rows, ends = np.arange(batch), np.full(batch, length)
    else:
        changes = np.ones((batch, length + 1), bool)
        changes[:, 1:-1] = starts[:, 1:] != starts[:, :-1]
        rows, first = changes[:, :-1].nonzero()
        ends = changes[:, 1:].nonzero()[1] + 1
        starts = starts[rows, first]
    found = np.stack([rows, starts, ends], 1)
    return np.ascontiguousarray(found[starts < ends])


def _array(tensor):
    return tensor.detach().contiguous().numpy()


def _tiny(alpha):
    """Weights up to this count as zero: far below rounding, and no product of two larger ones is a slow denormal."""
    return _array(alpha).dtype.type(torch.finfo(alpha.dtype).tiny ** 0.5)


def _share(function, count):
    """Calls function(low, high) on slices of the sequences, in as many threads as PyTorch uses."""
    threads = min(torch.get_num_threads(), count)
    if threads < 2:
        function(0, count)
        return
    bounds = [count * t // threads for t in range(threads + 1)]
    own, *others = pairwise(bounds)
    waiting = [_pool(threads - 1, os.getpid()).submit(function, *pair) for pair in others]
    function(*own)
    for future in waiting:
        future.result()


@cache
def _pool(threads, process):  # a forked process has none of its parent's threads
    return ThreadPoolExecutor(threads, thread_name_prefix="stack-attention")
