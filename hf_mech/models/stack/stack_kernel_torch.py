"""The recursion of stack attention (Eq. 19-24) in PyTorch, forward and backward: for devices without a kernel.

Each position needs a few batched matrix products on slices of alpha; no growing tensor is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def forward(actions: Tensor, start: Tensor | None, past: Tensor | None) -> Tensor:
    """alpha [batch, N, N] from actions [batch, length, 2 + K]; the arguments are those of `stack_attention`."""
    batch, length, kinds = actions.shape
    done = 0 if past is None else past.shape[1]
    alpha = actions.new_zeros(batch, done + length, done + length)
    if past is not None:
        alpha[:, :done, :done] = past
    bottoms, actions = _sequences(actions, start, alpha)
    for i in range(done, done + length):
        action, bottom = actions[:, i - done], bottoms[:, i - done]
        alpha[:, i, i] = action[:, 0] + bottom[:, i]
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
    bottoms, actions = _sequences(actions, start, alpha)
    for i in range(size - 1, max(done, 1) - 1, -1):
        action, result, bottom = actions[:, i - done], grad_actions[:, i - done], bottoms[:, i - done]
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
                grad[:, : i - 1, :i].baddbmm_(_above(states[k - 1], bottom)[:, 1:, None], sent[:, None])
            back = _unpop(sent, alpha, bottom)
        grad[:, i - 1, :i] += action[:, -1:] * own + back
    places = torch.arange(done, size, device=alpha.device)
    return torch.where((_starts(start, actions) < places)[..., None], grad_actions, 0)


def _starts(start: Tensor | None, actions: Tensor) -> Tensor:
    """The column of position 0 for every new position, [batch, length]."""
    if start is None:
        return torch.zeros(actions.shape[:2], dtype=torch.long, device=actions.device)
    start = start.to(actions.device)
    return start if start.dim() == 2 else start[:, None].expand(actions.shape[:2])


def _sequences(actions: Tensor, start: Tensor | None, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """For every new position, the columns of its position 0 [batch, length, N]; and the actions, zero at position 0."""
    starts, places = _starts(start, actions), torch.arange(alpha.shape[1], device=alpha.device)
    here = places[alpha.shape[1] - actions.shape[1] :]
    return starts[..., None] == places, torch.where((starts < here)[..., None], actions, 0)


def _above(state: Tensor, bottom: Tensor) -> Tensor:
    """The state without its weight on position 0, whose row of T is no row of alpha."""
    return torch.where(bottom[:, : state.shape[1]], 0, state)


def _pop(state: Tensor, alpha: Tensor, bottom: Tensor) -> Tensor:
    """state T (Eq. 22): [batch, i] for position i."""
    i = state.shape[1]
    popped = torch.where(bottom[:, :i], state, 0)
    return popped + torch.bmm(_above(state, bottom)[:, None, 1:], alpha[:, : i - 1, :i])[:, 0]


def _unpop(grad: Tensor, alpha: Tensor, bottom: Tensor) -> Tensor:
    """T grad, the transpose of `_pop`."""
    i = grad.shape[1]
    back = nn.functional.pad(torch.bmm(alpha[:, : i - 1, :i], grad[:, :, None])[:, :, 0], (1, 0))
    return torch.where(bottom[:, :i], grad, back)
