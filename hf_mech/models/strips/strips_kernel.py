"""The linear-time form of Eq. 15-17 as compiled loops for the CPU, forward and backward.

The innermost, contiguous loop is over `lane`, a head of an ensemble member: all lanes do the same arithmetic, so the
compiler vectorises it. numba is optional: without it `available` is False and `strips_attention` uses its PyTorch
form.
"""

from __future__ import annotations

import numpy as np

try:
    from numba import njit
except ImportError:  # a checkpoint's code must load where numba is missing
    njit = None

available = njit is not None


def _forward(table, ids, members, heads, scores):
    """Fills `heads` (Eq. 16) and `scores` (Eq. 17).

    table [actions, 3, lanes]: query, key and value of every action; ids [batch, length], negative at padding;
    heads [batch, length, lanes]; scores [batch, length, members], lanes = members x heads a member.

    For a possible next action m the state is r = y_p(i | a_i = m). Every action a_j updates it: r <- r (1 - s) + s v
    with s = q_m k_j. So only actions that occur later need a state.
    """
    batch, length = ids.shape
    actions, _, lanes = table.shape
    last = np.empty(actions, np.int64)
    state = np.empty(lanes, table.dtype)
    for b in range(batch):
        last[:] = -1
        for t in range(length):
            if ids[b, t] >= 0:
                last[ids[b, t]] = t
        for m in range(actions):
            state[:] = 0
            for t in range(last[m] + 1):
                x = ids[b, t]
                if x < 0:
                    continue
                if x == m:
                    for n in range(lanes):
                        heads[b, t, n] = state[n]
                if t < last[m]:
                    for n in range(lanes):
                        share = table[m, 0, n] * table[x, 1, n]
                        state[n] += share * (table[x, 2, n] - state[n])
        width = lanes // members
        for t in range(length):
            for e in range(members):
                none = table.dtype.type(1)
                for n in range(e * width, (e + 1) * width):
                    none *= 1 - heads[b, t, n]
                scores[b, t, e] = 1 - none


def _backward(table, ids, heads, grad_heads, grad_scores, grad_table):
    """Adds to `grad_table` [actions, 3, lanes] the gradient of `grad_heads` and `grad_scores`; alters `grad_heads`."""
    batch, length = ids.shape
    actions, _, lanes = table.shape
    members = grad_scores.shape[2]
    width = lanes // members
    last = np.empty(actions, np.int64)
    history = np.empty((length + 1, lanes), table.dtype)
    grad = np.empty(lanes, table.dtype)
    grad_query = np.empty(lanes, table.dtype)
    scratch = np.empty(lanes, table.dtype)
    for b in range(batch):
        # Eq. 17: dy/dy_p is the product of (1 - y_p') over the other heads, kept exact when a factor is zero.
        for t in range(length):
            if ids[b, t] < 0:
                continue
            for e in range(members):
                before = grad_scores[b, t, e]
                for n in range(e * width, (e + 1) * width):
                    grad[n] = before
                    before *= 1 - heads[b, t, n]
                after = table.dtype.type(1)
                for n in range((e + 1) * width - 1, e * width - 1, -1):
                    grad_heads[b, t, n] += grad[n] * after
                    after *= 1 - heads[b, t, n]
        last[:] = -1
        for t in range(length):
            if ids[b, t] >= 0:
                last[ids[b, t]] = t
        for m in range(actions):
            if last[m] < 1:
                continue
            history[0] = 0
            for t in range(last[m]):
                x = ids[b, t]
                if x < 0:
                    for n in range(lanes):
                        history[t + 1, n] = history[t, n]
                else:
                    for n in range(lanes):
                        share = table[m, 0, n] * table[x, 1, n]
                        history[t + 1, n] = history[t, n] + share * (table[x, 2, n] - history[t, n])
            for n in range(lanes):
                grad[n] = grad_heads[b, last[m], n]
                grad_query[n] = 0
            for t in range(last[m] - 1, -1, -1):
                x = ids[b, t]
                if x < 0:
                    continue
                # Each loop writes one array: with more, the compiler must assume aliasing and does not vectorise.
                for n in range(lanes):
                    scratch[n] = grad[n] * (table[x, 2, n] - history[t, n])  # the gradient of `share`
                for n in range(lanes):
                    grad_query[n] += scratch[n] * table[x, 1, n]
                for n in range(lanes):
                    grad_table[x, 1, n] += scratch[n] * table[m, 0, n]
                for n in range(lanes):
                    scratch[n] = table[m, 0, n] * table[x, 1, n]  # `share`
                for n in range(lanes):
                    grad_table[x, 2, n] += grad[n] * scratch[n]
                for n in range(lanes):
                    grad[n] *= 1 - scratch[n]
                if x == m:
                    for n in range(lanes):
                        grad[n] += grad_heads[b, t, n]
            for n in range(lanes):
                grad_table[m, 0, n] += grad_query[n]


if available:
    try:
        _forward, _backward = (njit(function, cache=True, nogil=True) for function in (_forward, _backward))
    except RuntimeError:  # no writable folder for the cache: compile in every process
        _forward, _backward = (njit(function, nogil=True) for function in (_forward, _backward))


def forward(table: np.ndarray, ids: np.ndarray, members: int) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 16 and 17 of every position.

    Args:
        table: query, key and value of every action, [actions, 3, lanes], lanes = members x heads a member.
        ids: the actions, [batch, length], negative at padding.
        members: the number of ensemble members in the lanes.

    Returns:
        y_p [batch, length, lanes] and y [batch, length, members]; 0 at padding.
    """
    heads = np.zeros((*ids.shape, table.shape[2]), table.dtype)
    scores = np.zeros((*ids.shape, members), table.dtype)
    _forward(table, ids, members, heads, scores)
    return heads, scores


def backward(
    table: np.ndarray, ids: np.ndarray, heads: np.ndarray, grad_heads: np.ndarray | None, grad_scores: np.ndarray
) -> np.ndarray:
    """The gradient of `table`, [actions, 3, lanes], from those of `forward`'s two results."""
    grad_heads = np.zeros_like(heads) if grad_heads is None else grad_heads.copy()
    grad_table = np.zeros_like(table)
    _backward(table, ids, heads, grad_heads, grad_scores, grad_table)
    return grad_table
