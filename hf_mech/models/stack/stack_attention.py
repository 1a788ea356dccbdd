"""Stack attention: a stack over positions as a differentiable attention, by its equations and in fast forms.

Equations are those of "A Transformer with Stack Attention", Sec. 3.2. `actions` [batch, length, 2 + K] are
probabilities of push, pop 1, ..., pop K and no-op; K = 1 is the paper, K > 1 removes its limit of one pop a step.
`alpha` [batch, N, N] holds the stacks, alpha[b, i, n] = alpha_i(n). Position 0 is the BOS token, the empty stack.

With T the matrix of rows T[0] = e_0 and T[j] = alpha_{j-1}, Eq. 22 is alpha_i^POP = alpha_{i-1} T, and popping k times
is alpha_{i-1} T^k. Rows of T are distributions, hence Theorem 3.2 for any K.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from .stack_errors import ActionError, BosError

_NAMESPACE = f"hf_mech_{zlib.crc32(__name__.encode()):08x}"  # a checkpoint's copy of this file has its own operators


def stack_attention_reference(actions: Tensor, *, start: Tensor | None = None) -> Tensor:
    """Eq. 19-23 exactly as in the paper, one position after the other, with PyTorch's own gradient.

    Args:
        actions: [batch, N, 2 + K], rows sum to one.
        start: [batch], the position of the BOS in each row; None means 0.

    Returns:
        alpha [batch, N, N]; rows before `start` are zero.
    """
    batch, length, _ = actions.shape
    one_hot = torch.eye(length, dtype=actions.dtype, device=actions.device)
    if start is None:
        start = torch.zeros(batch, dtype=torch.long, device=actions.device)
    stacks: list[Tensor] = []
    for i in range(length):
        if i == 0:
            new = torch.zeros_like(one_hot[0]).expand(batch, length)
        else:
            push, *pops, noop = actions[:, i].split(1, dim=-1)
            new = push * one_hot[i]  # Eq. 20
            state = stacks[i - 1]
            new = new + noop * state  # Eq. 21
            for pop in pops:
                before = one_hot[start.clamp(max=i)] * state  # the term of the empty stack in Eq. 22
                for j in range(1, i):
                    before = before + state[:, j, None] * stacks[j - 1]
                state = before
                new = new + pop * state
        begins = torch.where(start[:, None] == i, one_hot[i], torch.zeros_like(new))  # Eq. 19
        stacks.append(torch.where(start[:, None] < i, new, begins))
    return torch.stack(stacks, dim=1)


def stack_attention(
    actions: Tensor, *, start: Tensor | None = None, past: Tensor | None = None, validate: bool = True
) -> Tensor:
    """The fast form: own forward and backward, compiled for the CPU (numba) and CUDA (Triton), else PyTorch.

    Values and gradients equal [`stack_attention_reference`]'s to rounding. Half precision is computed in float32.
    It needs memory for alpha and, in the backward pass, one buffer for a row of the batch.

    Args:
        actions: [batch, length, 2 + K] in the order push, pop 1, ..., pop K, no-op; rows sum to one. Rows of the BOS
            and of positions before it are ignored.
        start: [batch] integers, the position of the BOS in each row, for padding on the left. None means 0.
        past: alpha [batch, past_length, past_length] of the positions before `actions`, to process chunks.
        validate: check that actions are distributions; ignored under torch.compile.

    Returns:
        alpha [batch, N, N], N = past_length + length: lower triangular; row `start` is one-hot on column `start`, rows
        before it are zero, the others sum to one.

    Raises:
        ActionError: actions are not distributions, or shapes and types do not fit.
        BosError: `start` is negative.
        RuntimeError: on differentiating twice.
    """
    _check_shapes(actions, start, past)
    if validate and not torch.compiler.is_compiling():
        _check_values(actions, start)
    exact = actions if actions.dtype == torch.float64 else actions.float()
    if past is not None:
        past = past.to(exact.dtype)
        if actions.shape[1] == 1 and not (torch.is_grad_enabled() and actions.requires_grad):
            row = stack_attention_step(exact[:, 0], past, start=start)
            return torch.cat([torch.nn.functional.pad(past, (0, 1)), row[:, None]], dim=1).to(actions.dtype)
    return _forward(exact, start, past).to(actions.dtype)


def stack_attention_step(
    actions: Tensor, past: Tensor, *, start: Tensor | None = None, state: Tensor | None = None
) -> Tensor:
    """Only the next row of alpha, for generation: Eq. 20-23 in a few PyTorch operations.

    Args:
        actions: [batch, 2 + K], of the next position.
        past: alpha [batch, N, N] of the positions before, N >= 1.
        start: [batch], the position of the BOS in each row; None means 0.
        state: alpha of the previous position, [batch, N], if it is not the last row of `past`; later rows are zero.

    Returns:
        alpha_N, [batch, N + 1]; the push is its last column.
    """
    with torch.autocast(actions.device.type, enabled=False):  # a row's rounding error would affect all later rows
        return _step(actions, past, start, past[:, -1] if state is None else state)


def _step(actions: Tensor, past: Tensor, start: Tensor | None, state: Tensor) -> Tensor:
    length = past.shape[1]
    places = torch.arange(length, device=past.device)
    if start is None:
        empty = places == 0
        push = actions[:, :1]
    else:
        start = start.to(past.device)[:, None]
        empty = places == start
        push = torch.where(start < length, actions[:, :1], (start == length).to(actions.dtype))
    new = actions[:, -1:] * state
    for k in range(1, actions.shape[1] - 1):
        popped = torch.bmm(state[:, None, 1:], past[:, :-1])[:, 0]
        state = popped + torch.where(empty, state, 0)
        new = new + actions[:, k, None] * state
    return torch.cat([new, push], dim=1)


def read_stack(alpha: Tensor, hidden: Tensor) -> Tensor:
    """Eq. 25, S(H): the hidden state on top of each stack.

    Args:
        alpha: [batch, queries, N].
        hidden: [batch, N, hidden].

    Returns:
        [batch, queries, hidden].
    """
    return alpha.to(hidden.dtype) @ hidden


def _check_shapes(actions: Tensor, start: Tensor | None, past: Tensor | None) -> None:
    if not actions.is_floating_point():
        raise ActionError(
            f"actions must be floating point probabilities, not {actions.dtype}; for given operations use "
            "stack_attention_from_operations."
        )
    if actions.dim() != 3 or actions.shape[-1] < 3 or actions.shape[1] == 0:
        raise ActionError(
            f"actions must be [batch, length, 2 + K], length and K at least 1 (push, pop 1 ... pop K, no-op); they are "
            f"{list(actions.shape)}."
        )
    batch = actions.shape[0]
    if start is not None and (start.shape != (batch,) or start.is_floating_point() or start.dtype == torch.bool):
        raise ActionError(
            f"start must hold an integer for each of the {batch} rows of actions; it is {list(start.shape)}, "
            f"{start.dtype}."
        )
    if past is None:
        return
    if past.dim() != 3 or past.shape[0] != batch or past.shape[1] != past.shape[2] or past.shape[1] == 0:
        raise ActionError(
            f"past must be the alpha [{batch}, past_length, past_length] of the positions before; it is "
            f"{list(past.shape)}. Without any, leave it out."
        )
    if past.requires_grad and torch.is_grad_enabled():
        raise ActionError("past requires a gradient, which does not flow through it: pass past.detach().")


def _check_values(actions: Tensor, start: Tensor | None) -> None:
    values = actions.detach()
    tolerance = 1e-3 if actions.dtype in (torch.float32, torch.float64) else 2e-2
    sums = values.sum(-1, dtype=values.dtype if values.dtype == torch.float64 else torch.float32)
    wrong = ~((sums - 1).abs() <= tolerance) | (values < 0).any(-1)  # so that NaN is wrong too
    if wrong.any():
        b, i = wrong.nonzero()[0].tolist()
        raise ActionError(
            f"actions must be probabilities that sum to one; row {b}, position {i} holds {values[b, i].tolist()}. "
            "Apply softmax over the last dimension."
        )
    if start is not None and (start < 0).any():
        raise BosError(f"start must not be negative; it is {start.tolist()}.")


def _kernel(actions: Tensor, length: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The fastest `forward` and `backward` for the actions' device; `length` is that of alpha."""
    if actions.device.type == "cpu":
        from .stack_kernel_cpu import available, backward, forward

        if available:
            return forward, backward
    elif actions.device.type == "cuda":
        from .stack_kernel_triton import LONGEST, available, backward, forward

        if available and length <= LONGEST:
            return forward, backward
    from .stack_kernel_torch import backward, forward

    return forward, backward


@torch.library.custom_op(
    f"{_NAMESPACE}::forward", mutates_args=(), schema="(Tensor actions, Tensor? start, Tensor? past) -> Tensor"
)
def _forward(actions, start, past):
    length = actions.shape[1] + (0 if past is None else past.shape[1])
    with torch.autocast(actions.device.type, enabled=False):
        return _kernel(actions, length)[0](actions, start, past)


@_forward.register_fake
def _(actions, start, past):
    length = actions.shape[1] + (0 if past is None else past.shape[1])
    return actions.new_empty(actions.shape[0], length, length)


@torch.library.custom_op(
    f"{_NAMESPACE}::backward",
    mutates_args=(),
    schema="(Tensor grad_alpha, Tensor actions, Tensor alpha, Tensor? start) -> Tensor",
)
def _backward(grad_alpha, actions, alpha, start):
    with torch.autocast(actions.device.type, enabled=False):
        return _kernel(actions, alpha.shape[1])[1](grad_alpha, actions, alpha, start)


@_backward.register_fake
def _(grad_alpha, actions, alpha, start):
    return torch.empty_like(actions, memory_format=torch.contiguous_format)


def _save(ctx, inputs, output):
    actions, start, _ = inputs
    ctx.save_for_backward(actions, output, start)


def _differentiate(ctx, grad_alpha):
    actions, alpha, start = ctx.saved_tensors
    return _backward(grad_alpha, actions, alpha, start), None, None


def _refuse(ctx, grad):
    raise RuntimeError(
        "Stack attention cannot be differentiated twice by its own backward; use stack_attention_reference instead."
    )


_forward.register_autograd(_differentiate, setup_context=_save)
_backward.register_autograd(_refuse)
