"""How likely a walk is under a soft theta: beyond the paper, whose loss (Eq. 20-22) looks at the actions taken alone.

A walk that takes each applicable action as likely tells with each step something about the actions that it did not
take: those that are never taken in the states where the model allows them are probably impossible there. The negative
log-likelihood of a step is the logarithm of the number of allowed actions, here a soft number, by y of Eq. 17.

theta is [members, heads, actions, 3], `input_ids` [batch, length], negative at padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from hf_mech.models.strips.strips_attention import advance, failing, init_state, next_scores


def walk_loss(
    theta: Tensor, input_ids: Tensor, labels: Tensor, form: Callable[[Tensor, Tensor], Tensor] | None = None
) -> Tensor:
    """The negative log-likelihood of the applicable actions, for every ensemble member.

    The action that was taken counts as one, whatever the model says of it: that is the focal loss's business. As in
    Eq. 20, the mean over the traces of their sum over positions, divided by their length.

    Args:
        theta: in [0, 1], [members, heads, actions, 3].
        input_ids: the actions, [batch, length]; only those with a label are read.
        labels: 0 where the action is applicable, 1 where it has failed and changes nothing, -100 at padding,
            [batch, length].
        form: [`next_inapplicability`], or [`next_inapplicability_reference`].

    Returns:
        In nats, [members]; the sum trains each member as if alone.
    """
    ids, failed = torch.where(labels >= 0, input_ids, -1), labels == 1
    read = failing(theta, ids, failed) if (failed[:, :-1] & (labels[:, 1:] >= 0)).any() else (theta, ids)
    possible = 1 - (form or next_inapplicability)(*read)[:, :, : theta.shape[2]]
    taken = ids.clamp(min=0)[..., None, None].expand(*ids.shape, 1, theta.shape[0])
    others = possible.sum(2) - possible.gather(2, taken).squeeze(2)
    walked = (labels == 0) / (labels >= 0).sum(1, keepdim=True).clamp(min=1)
    return (walked[..., None] * others.clamp(min=0).log1p()).sum(1).mean(0)


def next_inapplicability(theta: Tensor, input_ids: Tensor) -> Tensor:
    """y of Eq. 17 for every action that might come next, before each position, [batch, length, actions, members].

    Compiled on the CPU; elsewhere [`next_inapplicability_reference`], to which it is equal to rounding, in value and
    gradient.
    """
    if theta.device.type == "cpu":
        return _Compiled.apply(theta, input_ids)
    return next_inapplicability_reference(theta, input_ids)


def next_inapplicability_reference(theta: Tensor, input_ids: Tensor) -> Tensor:
    """[`next_inapplicability`] by the recurrence of Eq. 15-16, one action after the other."""
    state, scores = init_state(theta, input_ids.shape[0]), []
    for action in input_ids.unbind(1):
        scores.append(next_scores(state))
        state = advance(theta, state, action)
    return torch.stack(scores, 1)


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, input_ids: Tensor) -> Tensor:
        members, heads, actions, _ = theta.shape
        table = theta.detach().permute(2, 3, 1, 0).reshape(actions, 3, heads * members).contiguous().numpy()
        ids = input_ids.contiguous().numpy()
        states = np.empty((len(ids), actions, ids.shape[1], heads * members), table.dtype)
        scores = np.empty((*ids.shape, actions, members), table.dtype)
        _forward(table, ids, states, scores)
        ctx.arrays = table, ids, states
        return torch.from_numpy(scores)

    @staticmethod
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor, None]:
        table, ids, states = ctx.arrays
        actions, members = grad_scores.shape[2:]
        grad = np.zeros_like(table)
        _backward(table, ids, states, grad_scores.contiguous().numpy(), grad)
        return torch.from_numpy(grad).view(actions, 3, -1, members).permute(3, 2, 0, 1), None


# In both, lane n is head n // members of member n % members: all lanes, and all members of a head, are contiguous, and
# the compiler vectorises over them.


@njit(cache=True, nogil=True)
def _forward(table, ids, states, scores):
    """Fills `states` [batch, actions, length, lanes], y_p of an action if it came next, and `scores` (Eq. 17)."""
    batch, length = ids.shape
    actions, _, lanes = table.shape
    members = scores.shape[3]
    none = np.empty(members, table.dtype)
    for b in range(batch):
        for m in range(actions):
            for t in range(length):
                state = states[b, m, t]
                x = ids[b, t - 1] if t else -1
                if t == 0:
                    state[:] = 0
                elif x < 0:
                    state[:] = states[b, m, t - 1]
                else:
                    for n in range(lanes):
                        share = table[m, 0, n] * table[x, 1, n]
                        state[n] = states[b, m, t - 1, n] + share * (table[x, 2, n] - states[b, m, t - 1, n])
                none[:] = 1
                for first in range(0, lanes, members):
                    for e in range(members):
                        none[e] *= 1 - state[first + e]
                for e in range(members):
                    scores[b, t, m, e] = 1 - none[e]


@njit(cache=True, nogil=True)
def _backward(table, ids, states, grad_scores, grad_table):
    """Adds to `grad_table` the gradient of `grad_scores`."""
    batch, length = ids.shape
    actions, _, lanes = table.shape
    members = grad_scores.shape[3]
    grad = np.empty(lanes, table.dtype)
    grad_query = np.empty(lanes, table.dtype)
    scratch = np.empty(lanes, table.dtype)
    product = np.empty(members, table.dtype)
    for b in range(batch):
        for m in range(actions):
            grad[:] = 0
            grad_query[:] = 0
            for t in range(length - 1, -1, -1):
                state = states[b, m, t]
                x = ids[b, t]
                if x >= 0:
                    # Each loop writes one array: with more, the compiler must assume aliasing and does not vectorise.
                    for n in range(lanes):
                        scratch[n] = grad[n] * (table[x, 2, n] - state[n])  # the gradient of `share`
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
                # Eq. 17: dy/dy_p is the product of 1 - y_p' over the other heads, those before times those behind.
                product[:] = grad_scores[b, t, m]
                for first in range(0, lanes, members):
                    for e in range(members):
                        scratch[first + e] = product[e]
                    for e in range(members):
                        product[e] *= 1 - state[first + e]
                product[:] = 1
                for first in range(lanes - members, -1, -members):
                    for e in range(members):
                        grad[first + e] += scratch[first + e] * product[e]
                    for e in range(members):
                        product[e] *= 1 - state[first + e]
            for n in range(lanes):
                grad_table[m, 0, n] += grad_query[n]
