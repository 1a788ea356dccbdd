"""The recursion of stack attention (Eq. 19-24) in PyTorch, forward and backward: for devices without a kernel.

Each position needs a few batched matrix products on slices of alpha; no growing tensor is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor


def forward(actions: Tensor, start: Tensor | None, past: Tensor | None) -> Tensor:
    """alpha [batch, N, N] from actions [batch, length, 2 + K]; the arguments are those of `stack_attention`."""
    batch, length, kinds = actions.shape
    done = 0 if past is None else past.shape[1]
    alpha = actions.new_zeros(batch, done + length, done + length)
    if past is not None:
        alpha[:, :done, :done] = past
    bottom, above = _places(start, alpha)
    for i in range(done, done + length):
        action = actions[:, i - done]
        alpha[:, i, i] = torch.where(above[:, i], action[:, 0], bottom[:, i].to(alpha.dtype))
        if i == 0:
            continue
        state = alpha[:, i - 1, :i]
        row = alpha[:, i, :i]
        torch.mul(state, action[:, -1:], out=row)
        for k in range(1, kinds - 1):
            state = _pop(state, alpha, bottom)
            row += action[:, k, None] * state
    return alpha


def backward(grad_alpha: Tensor, actions: Tensor, alpha: Tensor, start: Tensor | None) -> Tensor:
    """The gradient of the actions, in their shape. Besides alpha it needs one buffer [batch, N, N]."""
    size, kinds = alpha.shape[1], actions.shape[2]
    done = size - actions.shape[1]
    grad = grad_alpha.clone(memory_format=torch.contiguous_format)
    grad_actions = torch.zeros_like(actions, memory_format=torch.contiguous_format)
    bottom, above = _places(start, alpha)
    for i in range(size - 1, max(done, 1) - 1, -1):
        action, result = actions[:, i - done], grad_actions[:, i - done]
        own = grad[:, i, :i]
        states = [alpha[:, i - 1, :i]]  # v_k = alpha_{i-1} T^k
        for _ in range(2, kinds - 1):
            states.append(_pop(states[-1], alpha, bottom))
        result[:, 0] = grad[:, i, i]
        result[:, -1] = (own * states[0]).sum(-1)
        back = _unpop(own, alpha, bottom)
        for k, state in enumerate(states):  # <G_i, v_{k-1} T> = <T G_i, v_{k-1}>
            result[:, k + 1] = (back * state).sum(-1)
        back = torch.zeros_like(back)
        for k in range(len(states), 0, -1):
            sent = action[:, k, None] * own + back  # u_k, the gradient of v_k
            if i > 1:  # row j of T is alpha_{j-1}
                grad[:, : i - 1, :i].baddbmm_(states[k - 1][:, 1:, None], sent[:, None])
            back = _unpop(sent, alpha, bottom)
        grad[:, i - 1, :i] += action[:, -1:] * own + back
    return grad_actions * above[:, done:, None]


def _places(start: Tensor | None, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The place of the BOS and the positions after it, both [batch, N]."""
    places = torch.arange(alpha.shape[1], device=alpha.device).expand(alpha.shape[0], -1)
    begin = places.new_zeros(alpha.shape[0], 1) if start is None else start.to(places)[:, None]
    return places == begin, places > begin


def _pop(state: Tensor, alpha: Tensor, bottom: Tensor) -> Tensor:
    """state T (Eq. 22): [batch, i] for position i."""
    i = state.shape[1]
    popped = torch.where(bottom[:, :i], state, 0)
    return popped + torch.bmm(state[:, None, 1:], alpha[:, : i - 1, :i])[:, 0]


def _unpop(grad: Tensor, alpha: Tensor, bottom: Tensor) -> Tensor:
    """T grad, the transpose of `_pop`."""
    i = grad.shape[1]
    back = torch.where(bottom[:, :i], grad, 0)
    back[:, 1:] += torch.bmm(alpha[:, : i - 1, :i], grad[:, :, None])[:, :, 0]
    return back
