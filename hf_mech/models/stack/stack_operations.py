"""Hard stack operations: the attention of given operations, and the most probable operations of soft actions.

Operations are numbered like the actions: 0 is push, k is pop k (1 to K), K + 1 is no-op. Position 0, in column `start`,
is the empty stack; its operation and those before it are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .configuration_stack import StackError


def stack_attention_from_operations(
    operations: Tensor, *, multi_pop: int = 1, start: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Sec. 3.4: alpha of given operations, for all positions at once.

    The depth is the sum of +1 for a push and -k for pop k, but never below zero. With c_i the plain sum, it is
    d_i = c_i - min(0, c_1, ..., c_i). The top is the last push j <= i that led to depth d_i: later pushes led to other
    depths, earlier ones to d_i have been popped, and if j had been popped, a later push would have led to d_i.

    Args:
        operations: [batch, N] integers, 0 push, k pop k, multi_pop + 1 no-op.
        multi_pop: K, the most elements that an operation pops.
        start: the column of position 0, [batch], or [batch, N] of each position's own sequence, as in
            `stack_attention`; None means 0.
        dtype: of the result; None means torch's default.

    Returns:
        alpha [batch, N, N], one-hot rows, zero before `start`: equal to `stack_attention` on one-hot actions.

    Raises:
        StackError: an operation that does not exist, or a wrong shape or type.
    """
    check_operations(operations, multi_pop)
    batch, length = operations.shape
    places = torch.arange(length, device=operations.device)
    begin = places.new_zeros(batch) if start is None else start.to(places)
    if begin.dim() == 1:
        begin = begin[:, None].expand(batch, length)
    acts = places > begin
    push = acts & (operations == 0)
    popped = operations * (acts & (operations <= multi_pop))
    total = (push.long() - popped).cumsum(1)
    # Position 0 counts as the one push that leads to depth 0.
    pushed = push | (places == begin)
    # All sequences of a row at once: each one begins below the least sum of those before it.
    total = total - total.gather(1, begin.clamp(max=length - 1)) - begin * (multi_pop + 1)
    total = torch.where(places < begin, 0, total)
    depth = total - total.cummin(1).values
    fits = pushed[:, None] & (depth[:, None] == depth[:, :, None]) & (begin[:, None] == begin[:, :, None])
    top = torch.where(fits & (places <= places[:, None]), places, -1).amax(-1)  # -1 before position 0
    return (top[:, :, None] == places).to(dtype or torch.get_default_dtype())


def most_probable_operations(actions: Tensor) -> Tensor:
    """The operation [batch, N] of the largest of the actions [batch, N, 2 + K] at each position.

    Raises:
        StackError: actions of another shape.
    """
    if actions.dim() != 3 or actions.shape[-1] < 3:
        raise StackError(f"actions must be [batch, N, 2 + K], K at least 1; they are {list(actions.shape)}.")
    return actions.argmax(-1)


def operations_as_text(
    operations: Tensor | Sequence[int], symbols: Sequence[str], multi_pop: int = 1, *, start: int = 0
) -> str:
    """One row of operations in words, such as "push a · push b · pop · no-op".

    Args:
        operations: [N]; for a batch, call it once per row.
        symbols: the token at each position, N of them.
        multi_pop: K, the most elements that an operation pops.
        start: the position of the BOS; the text begins after it.

    Raises:
        StackError: an operation that does not exist, or different numbers of symbols and operations.
    """
    row = _row(operations, multi_pop)
    if len(symbols) != len(row):
        raise StackError(f"symbols must name each of the {len(row)} positions; there are {len(symbols)}.")
    return " · ".join(_word(row[i], symbols[i], multi_pop) for i in range(start + 1, len(row)))


def stacks_of(operations: Tensor | Sequence[int], multi_pop: int = 1, *, start: int = 0) -> list[list[int]]:
    """The stack of positions, bottom first, after every step of one row of operations [N] (Eq. 15-17).

    Raises:
        StackError: an operation that does not exist.
    """
    stack: list[int] = []
    stacks = []
    for i, operation in enumerate(_row(operations, multi_pop)):
        if i > start:
            if operation == 0:
                stack = [*stack, i]
            elif operation <= multi_pop:
                stack = stack[:-operation]
        stacks.append(stack)
    return stacks


def _word(operation: int, symbol: str, multi_pop: int) -> str:
    if operation == 0:
        return f"push {symbol}"
    if operation > multi_pop:
        return "no-op"
    return "pop" if operation == 1 else f"pop {operation}"


def _row(operations: Tensor | Sequence[int], multi_pop: int) -> list[int]:
    row = torch.as_tensor(operations)
    if row.dim() != 1:
        raise StackError(f"operations must be one row [N]; they are {list(row.shape)}. Take one row of the batch.")
    check_operations(row[None], multi_pop)
    return row.tolist()


def check_operations(operations: Tensor, multi_pop: int) -> None:
    """Raises StackError unless operations are [batch, N] integers from 0 to multi_pop + 1."""
    if operations.dim() != 2 or operations.shape[1] == 0:
        raise StackError(
            f"operations must be [batch, N], N at least 1; they are {list(operations.shape)}, {operations.dtype}."
        )
    if operations.is_floating_point() or operations.is_complex() or operations.dtype == torch.bool:
        raise StackError(
            f"operations must be integers, not {operations.dtype}; for probabilities use stack_attention, or "
            "most_probable_operations first."
        )
    if multi_pop < 1:
        raise StackError(f"multi_pop must be at least 1; it is {multi_pop}.")
    wrong = (operations < 0) | (operations > multi_pop + 1)
    if wrong.any():
        raise StackError(
            f"With multi_pop={multi_pop} operations are 0 (push), 1 to {multi_pop} (pop) and {multi_pop + 1} (no-op); "
            f"there is {operations[wrong][0].item()}."
        )
