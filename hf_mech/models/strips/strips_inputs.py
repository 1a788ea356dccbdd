"""Refuses traces and labels that the STRIPS Transformer cannot read, before any work starts."""

from __future__ import annotations

import torch
from torch import Tensor

from .strips_errors import TraceError


def mask_padding(input_ids: Tensor, attention_mask: Tensor | None, num_actions: int) -> Tensor:
    """The actions with -1 at padding, [batch, length].

    Padding is the id `num_actions` or a zero in `attention_mask`, at any position.

    Raises:
        TraceError: wrong shape, wrong dtype, an id out of range, or a row without any action.
    """
    if input_ids.dim() != 2 or input_ids.dtype not in (torch.int64, torch.int32):
        raise TraceError(
            f"input_ids must be integers of shape [batch, length], got {input_ids.dtype} {list(input_ids.shape)}."
        )
    if attention_mask is not None and attention_mask.shape != input_ids.shape:
        raise TraceError(
            f"attention_mask must have input_ids' shape, {list(input_ids.shape)}, got {list(attention_mask.shape)}."
        )
    real = input_ids != num_actions
    if attention_mask is not None:
        real = real & attention_mask.bool()
    ids = torch.where(real, input_ids, -1).long()
    if torch.compiler.is_compiling():
        return ids
    if ids.numel() == 0 or not bool(real.any(1).all()):
        raise TraceError("A trace is empty; every row of input_ids must hold at least one action.")
    wrong = (real & ((input_ids < 0) | (input_ids >= num_actions))).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise TraceError(
            f"Action index {int(input_ids[row, column])} at row {row}, position {column} is out of range; the model "
            f"knows {num_actions} actions, 0 to {num_actions - 1}, and {num_actions} for padding (a tokenizer's "
            f"{num_actions + 1} stands for a name that it does not know)."
        )
    return ids


def mask_step(actions: Tensor, num_actions: int) -> Tensor:
    """One action of every trace, [batch], with -1 for padding. Raises TraceError for a wrong shape or index."""
    if actions.dim() != 1 or actions.dtype not in (torch.int64, torch.int32):
        raise TraceError(f"A step takes one action a trace, integers of shape [batch], got {list(actions.shape)}.")
    wrong = actions[(actions < 0) | (actions > num_actions)]
    if len(wrong):
        raise TraceError(
            f"Action index {int(wrong[0])} is out of range; the model knows {num_actions} actions, 0 to "
            f"{num_actions - 1}, and {num_actions} for padding."
        )
    return torch.where(actions == num_actions, -1, actions).long()


def check_token_types(token_type_ids: Tensor | None, input_ids: Tensor) -> None:
    """Raises TraceError unless the token types, if there are any, are 0: a row is one trace."""
    if token_type_ids is None:
        return
    if token_type_ids.shape != input_ids.shape:
        raise TraceError(
            f"token_type_ids must have input_ids' shape, {list(input_ids.shape)}, got {list(token_type_ids.shape)}."
        )
    if not torch.compiler.is_compiling() and bool(token_type_ids.any()):
        raise TraceError("token_type_ids must be 0 everywhere: a row is one trace. Leave them out.")


def check_labels(labels: Tensor, ids: Tensor) -> None:
    """Raises TraceError unless labels [batch, length] hold 0 or 1 at every action of `ids` and -100 at padding."""
    if labels.shape != ids.shape:
        raise TraceError(f"labels must have the shape of input_ids, {list(ids.shape)}, got {list(labels.shape)}.")
    if torch.compiler.is_compiling():
        return
    wrong = torch.where(ids < 0, labels != -100, (labels != 0) & (labels != 1)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        where, want = ("padding", "-100") if int(ids[row, column]) < 0 else ("an action", "0 or 1")
        raise TraceError(
            f"labels hold {int(labels[row, column])} at row {row}, position {column}, which is {where}: expected "
            f"{want} (1 = inapplicable, 0 = applicable, -100 = padding)."
        )
