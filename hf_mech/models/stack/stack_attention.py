"""Stack attention: a stack over positions as a differentiable attention, by its equations and in fast forms.

Equations are those of "A Transformer with Stack Attention", Sec. 3.2. `actions` [batch, length, 2 + K] are
probabilities of push, pop 1, ..., pop K and no-op; K = 1 is the paper, K > 1 removes its limit of one pop a step.
`alpha` [batch, N, N] holds the stacks, alpha[b, i, n] = alpha_i(n). Position 0 is the empty stack. A row can hold
several sequences, one after the other; each has a position 0 and a stack of its own, and `start` names its column.

With T the matrix of rows T[0] = e_0 and T[j] = alpha_{j-1}, Eq. 22 is alpha_i^POP = alpha_{i-1} T, and popping k times
is alpha_{i-1} T^k. Rows of T are distributions, hence Theorem 3.2 for any K.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .configuration_stack import StackError

_NAMESPACE = f"hf_mech_{zlib.crc32(__name__.encode()):08x}"  # a checkpoint's copy of this file has its own operators


def stack_attention_reference(actions: Tensor, *, start: Tensor | None = None) -> Tensor:
    """Eq. 19-23 exactly as in the paper, one position after the other, with PyTorch's own gradient.

    Args:
        actions: [batch, N, 2 + K], rows sum to one.
        start: the column of position 0: [batch], or [batch, N] where rows hold several sequences, the one of each
            position's own sequence; None means 0. It lies after a position that belongs to no sequence yet.

    Returns:
        alpha [batch, N, N]; rows of positions that belong to no sequence are zero.
    """
    batch, length, _ = actions.shape
    one_hot = torch.eye(length, dtype=actions.dtype, device=actions.device)
    if start is None:
        start = torch.zeros(batch, dtype=torch.long, device=actions.device)
    starts = start if start.dim() == 2 else start[:, None].expand(-1, length)
    stacks: list[Tensor] = []
    for i in range(length):
        begin = starts[:, i, None]
        if i == 0:
            new = torch.zeros_like(one_hot[0]).expand(batch, length)
        else:
            push, *pops, noop = actions[:, i].split(1, dim=-1)
            new = push * one_hot[i]  # Eq. 20
            state = stacks[i - 1]
            new = new + noop * state  # Eq. 21
            for pop in pops:
                before = torch.where(begin == torch.arange(length), state, 0)  # the term of the empty stack in Eq. 22
                for j in range(1, i):
                    before = before + torch.where(begin < j, state[:, j, None], 0) * stacks[j - 1]
                state = before
                new = new + pop * state
        begins = torch.where(begin == i, one_hot[i], torch.zeros_like(new))  # Eq. 19
        stacks.append(torch.where(begin < i, new, begins))
    return torch.stack(stacks, dim=1)


def stack_attention(actions: Tensor, *, start: Tensor | None = None, validate: bool = True) -> Tensor:
    """The fast form: own forward and backward, compiled for the CPU (numba) and CUDA (Triton), else PyTorch.

    Values and gradients equal [`stack_attention_reference`]'s to rounding. Half precision is computed in float32.
    It needs memory for alpha and, in the backward pass, one buffer for a row of the batch.

    Args:
        actions: [batch, N, 2 + K] in the order push, pop 1, ..., pop K, no-op; rows sum to one. Rows of position 0
            and before it are ignored.
        start: integers, the column of position 0. [batch]: of each row, for padding on the left. [batch, N]: of each
            position's own sequence, for several sequences in a row; positions of one sequence are
            neighbours, and those before the first sequence have a start after themselves. None means 0.
        validate: check that actions are distributions; ignored under torch.compile.

    Returns:
        alpha [batch, N, N]: lower triangular; row `start` is one-hot on column `start`, rows
        before it are zero, the others sum to one. No position has a part of another sequence's on its stack.

    Raises:
        StackError: actions are not distributions, shapes and types do not fit, or `start` is negative or divides a
            sequence.
        RuntimeError: on differentiating twice.
    """
    _check_shapes(actions, start)
    if validate and not torch.compiler.is_compiling():
        _check_values(actions)
        if start is not None:
            _check_start(start)
    exact = actions if actions.dtype == torch.float64 else actions.float()
    if torch.compiler.is_exporting():
        return _forward_exported(exact, start).to(actions.dtype)
    return _forward(exact, start).to(actions.dtype)


def read_stack(alpha: Tensor, hidden: Tensor) -> Tensor:
    """Eq. 25, S(H): the hidden state on top of each stack.

    Args:
        alpha: [batch, queries, N].
        hidden: [batch, N, hidden].

    Returns:
        [batch, queries, hidden].
    """
    return alpha.to(hidden.dtype) @ hidden


def _check_shapes(actions: Tensor, start: Tensor | None) -> None:
    if not actions.is_floating_point():
        raise StackError(
            f"actions must be floating point probabilities, not {actions.dtype}; for given operations use "
            "stack_attention_from_operations."
        )
    if actions.dim() != 3 or actions.shape[-1] < 3 or actions.shape[1] == 0:
        raise StackError(
            f"actions must be [batch, length, 2 + K], length and K at least 1 (push, pop 1 ... pop K, no-op); they are "
            f"{list(actions.shape)}."
        )
    batch = actions.shape[0]
    if start is not None and (
        start.shape not in ((batch,), actions.shape[:2]) or start.is_floating_point() or start.dtype == torch.bool
    ):
        raise StackError(
            f"start must hold an integer for each of the {batch} rows of actions, or for each of the "
            f"{list(actions.shape[:2])} positions; it is {list(start.shape)}, {start.dtype}."
        )


def _check_values(actions: Tensor) -> None:
    values = actions.detach()
    tolerance = 1e-3 if actions.dtype in (torch.float32, torch.float64) else 2e-2
    sums = values.sum(-1, dtype=values.dtype if values.dtype == torch.float64 else torch.float32)
    wrong = ~((sums - 1).abs() <= tolerance) | (values < 0).any(-1)  # so that NaN is wrong too
    if wrong.any():
        b, i = wrong.nonzero()[0].tolist()
        raise StackError(
            f"actions must be probabilities that sum to one; row {b}, position {i} holds {values[b, i].tolist()}. "
            "Apply softmax over the last dimension."
        )


def _check_start(start: Tensor) -> None:
    if (start < 0).any():
        raise StackError(f"start must not be negative; it is {start.tolist()}.")
    if start.dim() == 1:
        return
    places = torch.arange(1, start.shape[1], device=start.device)
    wrong = (start[:, 1:] < places) & (start[:, 1:] != start[:, :-1])
    if wrong.any():
        b, i = wrong.nonzero()[0].tolist()
        raise StackError(
            f"start must be the same for all positions of a sequence; in row {b}, position {i + 1} has "
            f"{int(start[b, i + 1])} and the position before it {int(start[b, i])}. Where a sequence begins, start is "
            "that position itself."
        )


def _kernel(actions: Tensor) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The fastest `forward` and `backward` for the actions' device and length."""
    if actions.device.type == "cpu":
        from .stack_kernel_cpu import available, backward, forward

        if available:
            return forward, backward
    elif actions.device.type == "cuda":
        from .stack_kernel_triton import LONGEST, available, backward, forward

        if available and actions.shape[1] <= LONGEST:
            return forward, backward
    return forward_torch, backward_torch


@torch.library.custom_op(f"{_NAMESPACE}::forward", mutates_args=(), schema="(Tensor actions, Tensor? start) -> Tensor")
def _forward(actions, start):
    with torch.autocast(actions.device.type, enabled=False):
        return _kernel(actions)[0](actions, start)


@_forward.register_fake
def _(actions, start):
    batch, length, _ = actions.shape
    return actions.new_empty(batch, length, length)


@torch.library.custom_op(
    f"{_NAMESPACE}::backward",
    mutates_args=(),
    schema="(Tensor grad_alpha, Tensor actions, Tensor alpha, Tensor? start) -> Tensor",
)
def _backward(grad_alpha, actions, alpha, start):
    with torch.autocast(actions.device.type, enabled=False):
        return _kernel(actions)[1](grad_alpha, actions, alpha, start)


@_backward.register_fake
def _(grad_alpha, actions, alpha, start):
    return torch.empty_like(actions, memory_format=torch.contiguous_format)


def _forward_exported(actions: Tensor, start: Tensor | None) -> Tensor:
    """The same as a loop that `torch.export` and ONNX know, so that an exported model has none of our operators."""
    from torch._higher_order_ops import scan  # as PyTorch documents torch.scan

    if torch.onnx.is_in_onnx_export():
        actions = actions.detach()  # the exporter knows no loop that keeps what a gradient needs
    batch, length, _ = actions.shape
    places = torch.arange(length, device=actions.device)

    def step(carried: tuple[Tensor, Tensor], given: tuple[Tensor, ...]) -> tuple[tuple[Tensor, Tensor], Tensor]:
        (below, state), (action, begin, place) = carried, given  # `below` is T
        begin, here = begin[:, None], places == place
        state, row = torch.where(begin < place, state, 0), torch.where(here & (begin == place), 1, 0)
        row = row + torch.where(here & (begin < place), action[:, :1], 0) + action[:, -1:] * state
        for k in range(1, action.shape[1] - 1):
            bottom = torch.where(places == begin, state, 0)
            state = bottom + torch.bmm((state - bottom)[:, None], below)[:, 0]
            row = row + action[:, k, None] * state
        return (torch.where((places == place + 1)[:, None], row[:, None], below), row), row.clone()

    initial = actions.new_zeros(batch, length, length), actions.new_zeros(batch, length)
    given = actions.transpose(0, 1), _starts(start, actions).transpose(0, 1), places
    return scan(step, initial, given)[1].transpose(0, 1)


def _save(ctx, inputs, output):
    actions, start = inputs
    ctx.save_for_backward(actions, output, start)


def _differentiate(ctx, grad_alpha):
    actions, alpha, start = ctx.saved_tensors
    return _backward(grad_alpha, actions, alpha, start), None


def _refuse(ctx, grad):
    raise RuntimeError(
        "Stack attention cannot be differentiated twice by its own backward; use stack_attention_reference instead."
    )


_forward.register_autograd(_differentiate, setup_context=_save)
_backward.register_autograd(_refuse)


# ------------------------------------------------------------ the recursion in PyTorch, for devices without a kernel
#
# Each position needs a few batched matrix products on slices of alpha; no growing tensor is copied.


def forward_torch(actions: Tensor, start: Tensor | None) -> Tensor:
    """alpha [batch, N, N] from actions [batch, N, 2 + K]; the arguments are those of `stack_attention`."""
    batch, length, kinds = actions.shape
    alpha = actions.new_zeros(batch, length, length)
    bottoms, actions = _split(actions, start)
    for i in range(length):
        action, bottom = actions[:, i], bottoms[:, i]
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


def backward_torch(grad_alpha: Tensor, actions: Tensor, alpha: Tensor, start: Tensor | None) -> Tensor:
    """The gradient of the actions, in their shape. Besides alpha it needs one buffer [batch, N, N]."""
    _, length, kinds = actions.shape
    grad = grad_alpha.clone(memory_format=torch.contiguous_format)
    grad_actions = torch.zeros_like(actions, memory_format=torch.contiguous_format)
    bottoms, actions = _split(actions, start)
    for i in range(length - 1, 0, -1):
        action, result, bottom = actions[:, i], grad_actions[:, i], bottoms[:, i]
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
    places = torch.arange(length, device=alpha.device)
    return torch.where((_starts(start, actions) < places)[..., None], grad_actions, 0)


def _starts(start: Tensor | None, actions: Tensor) -> Tensor:
    """The column of position 0 for every position, [batch, N]."""
    if start is None:
        return torch.zeros(actions.shape[:2], dtype=torch.long, device=actions.device)
    start = start.to(actions.device)
    return start if start.dim() == 2 else start[:, None].expand(actions.shape[:2])


def _split(actions: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
    """For every position, the columns of its position 0 [batch, N, N]; and the actions, zero at position 0."""
    starts, places = _starts(start, actions), torch.arange(actions.shape[1], device=actions.device)
    return starts[..., None] == places, torch.where((starts < places)[..., None], actions, 0)


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
