"""Losses without labels that teach a stack to be used: structural priors, for texts that are known to have structure.

They say nothing about which symbols push and which pop.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .stack_errors import StackError

_PUSH, _POP = 0, 1
_SURPLUS = 2.0


def balance_loss(stack_attentions: Sequence[Tensor], stack_actions: Sequence[Tensor], text: Tensor) -> Tensor:
    """How far each layer's stack is from balanced nesting over a text: it ends empty and is never popped when empty.

    A stack that does nothing is balanced, too; see [`push_loss`].

    Args:
        stack_attentions: of a model with `output_stack_attentions=True`, each [batch, N, N].
        stack_actions: the same, each [batch, N, 2 + K].
        text: True at the positions of the balanced text, [batch, N]; each row has at least one. The position before the
            first is the empty stack, so that none is at the first column.

    Returns:
        A number from 0 on, summed over the layers and averaged over the rows: the probability that the stack is not
        empty after the text; the mean probability that a position of the text pops the empty stack; and twice the
        difference between the shares of pushes and pops, a pop of k counted k times, which says how far from empty a
        stack is that is surely not.

    Raises:
        StackError: a text of another shape or type, without a position, or that begins at the first column.
    """
    _check(text, stack_actions)
    if bool(text[:, 0].any()):
        raise StackError("A balanced text begins behind the empty stack: text must be False at the first position.")
    places = torch.arange(text.shape[1], device=text.device)
    bottom = text.int().argmax(1) - 1
    last = torch.where(text, places, -1).amax(1)
    rows = torch.arange(len(text), device=text.device)
    total = torch.zeros((), device=text.device)
    for alpha, actions in zip(stack_attentions, stack_actions, strict=True):
        empty = alpha.gather(2, bottom[:, None, None].expand(-1, alpha.shape[1], 1))[..., 0]  # [batch, N]
        popped = actions[:, 1:, _POP:-1].sum(-1) * empty[:, :-1] * text[:, 1:]
        pops = actions[..., _POP:-1] @ torch.arange(1.0, actions.shape[-1] - 1, device=text.device).to(actions)
        surplus = ((actions[..., _PUSH] - pops) * text).sum(1).abs()
        total = total + (1 - empty[rows, last]).mean() + ((popped.sum(1) + _SURPLUS * surplus) / text.sum(1)).mean()
    return total


def push_loss(stack_actions: Sequence[Tensor], text: Tensor, least: float) -> Tensor:
    """The share of pushes that each layer's actions lack: the sum over the layers of max(0, least - share).

    Args:
        stack_actions: of a model with `output_stack_attentions=True`, each [batch, N, 2 + K].
        text: True at the positions that count, [batch, N].
        least: the share of pushes that is enough, 0 to 1.

    Raises:
        StackError: a text of another shape or type, or without a position; a share out of its range.
    """
    _check(text, stack_actions)
    if not 0 <= least <= 1:
        raise StackError(f"least is a share of the positions, 0 to 1, got {least}.")
    shares = [(actions[..., _PUSH] * text).sum() / text.sum() for actions in stack_actions]
    return torch.stack([(least - share).clamp(min=0) for share in shares]).sum()


def _check(text: Tensor, stack_actions: Sequence[Tensor]) -> None:
    if not len(stack_actions):
        raise StackError("There are no actions; ask a model with a stack for them, with output_stack_attentions=True.")
    shape = list(stack_actions[0].shape[:2])
    if text.dtype != torch.bool or list(text.shape) != shape:
        raise StackError(f"text must be boolean and {shape}, as the actions; got {text.dtype}, {list(text.shape)}.")
    if not bool(text.any(1).all()):
        raise StackError("Each row of text needs a position that is True.")
