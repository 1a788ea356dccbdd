"""What the STRIPS Transformer reads: ids, objects, labels and failures, checked before any work starts."""

from __future__ import annotations

import torch
from torch import Tensor

from .strips_cells import Cells
from .strips_domain import StripsError


def mask_padding(input_ids: Tensor, attention_mask: Tensor | None, num_actions: int) -> Tensor:
    """The actions with -1 at padding, [batch, length].

    Padding is the id `num_actions` or a zero in `attention_mask`, at any position.

    Raises:
        StripsError: wrong shape, wrong dtype, an id out of range, or a row without any action.
    """
    if input_ids.dim() != 2 or input_ids.dtype not in (torch.int64, torch.int32):
        raise StripsError(
            f"input_ids must be integers of shape [batch, length], got {input_ids.dtype} {list(input_ids.shape)}."
        )
    if attention_mask is not None and attention_mask.shape != input_ids.shape:
        raise StripsError(
            f"attention_mask must have input_ids' shape, {list(input_ids.shape)}, got {list(attention_mask.shape)}."
        )
    real = input_ids != num_actions
    if attention_mask is not None:
        real = real & attention_mask.bool()
    ids = torch.where(real, input_ids, -1).long()
    if torch.compiler.is_compiling():
        return ids
    if ids.numel() == 0 or not bool(real.any(1).all()):
        raise StripsError("A trace is empty; every row of input_ids must hold at least one action.")
    wrong = (real & ((input_ids < 0) | (input_ids >= num_actions))).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise StripsError(
            f"Action index {int(input_ids[row, column])} at row {row}, position {column} is out of range; the model "
            f"knows {num_actions} actions, 0 to {num_actions - 1}, and {num_actions} for padding (a tokenizer's "
            f"{num_actions + 1} stands for a name that it does not know)."
        )
    return ids


def mask_step(actions: Tensor, failed: Tensor | None, num_actions: int) -> Tensor:
    """One action of every trace, [batch], with -1 for padding and for an action that failed: neither changes anything.

    Raises:
        StripsError: a wrong shape or index.
    """
    if actions.dim() != 1 or actions.dtype not in (torch.int64, torch.int32):
        raise StripsError(f"A step takes one action a trace, integers of shape [batch], got {list(actions.shape)}.")
    wrong = actions[(actions < 0) | (actions > num_actions)]
    if len(wrong):
        raise StripsError(
            f"Action index {int(wrong[0])} is out of range; the model knows {num_actions} actions, 0 to "
            f"{num_actions - 1}, and {num_actions} for padding."
        )
    idle = actions == num_actions
    if failed is not None:
        if failed.shape != actions.shape:
            raise StripsError(
                f"failed must have the shape of the actions, {list(actions.shape)}, got {list(failed.shape)}."
            )
        idle = idle | failed.bool()
    return torch.where(idle, -1, actions).long()


def check_token_types(token_type_ids: Tensor | None, input_ids: Tensor) -> None:
    """Raises StripsError unless the token types, if there are any, are 0: a row is one trace."""
    if token_type_ids is None:
        return
    if token_type_ids.shape != input_ids.shape:
        raise StripsError(
            f"token_type_ids must have input_ids' shape, {list(input_ids.shape)}, got {list(token_type_ids.shape)}."
        )
    if not torch.compiler.is_compiling() and bool(token_type_ids.any()):
        raise StripsError("token_type_ids must be 0 everywhere: a row is one trace. Leave them out.")


def check_labels(labels: Tensor, ids: Tensor) -> None:
    """Raises StripsError unless labels [batch, length] hold 0 or 1 at every action of `ids` and -100 at padding."""
    if labels.shape != ids.shape:
        raise StripsError(f"labels must have the shape of input_ids, {list(ids.shape)}, got {list(labels.shape)}.")
    if torch.compiler.is_compiling():
        return
    wrong = torch.where(ids < 0, labels != -100, (labels != 0) & (labels != 1)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        where, want = ("padding", "-100") if int(ids[row, column]) < 0 else ("an action", "0 or 1")
        raise StripsError(
            f"labels hold {int(labels[row, column])} at row {row}, position {column}, which is {where}: expected "
            f"{want} (1 = inapplicable, 0 = applicable, -100 = padding)."
        )


def check_objects(objects: Tensor | None, ids: Tensor, cells: Cells | None) -> Tensor:
    """The objects of every action, [batch, length, places], -1 where an action has none.

    Args:
        objects: integers from 0, any numbers, the same for the same object in a row; may be None where no action takes
            objects.
        ids: the actions, [batch, length], negative at padding.
        cells: of a lifted model; None: of a propositional one, whose actions take no objects.

    Raises:
        StripsError: objects of a wrong shape or type, too few or too many for an action, or for a model without.
    """
    if cells is None:
        if objects is not None:
            raise StripsError(
                "objects: the actions of this model take none, it is propositional. Leave them out, or make a lifted "
                "model with StripsTransformerConfig(parameters=..., predicates=...)."
            )
        return ids[..., None][..., :0]
    if objects is None:
        if cells.arity:
            raise StripsError(
                f"objects are missing: this model is lifted, so give the objects of every action as integers, [batch, "
                f"length, {cells.arity}], -1 where an action has none; `encode_trace` and `StripsDataCollator` make "
                "them."
            )
        return ids[..., None][..., :0]
    wide = objects.dim() == ids.dim() + 1 and objects.shape[-1] >= cells.arity
    if objects.dtype not in (torch.int64, torch.int32) or not wide or objects.shape[:-1] != ids.shape:
        raise StripsError(
            f"objects must be integers of shape {[*ids.shape, cells.arity]}, got {objects.dtype} {list(objects.shape)}."
        )
    if torch.compiler.is_compiling():
        return objects
    takes = torch.tensor([len(types) for types in cells.parameters.values()], device=ids.device)[ids.clamp(min=0)]
    wanted = torch.arange(objects.shape[-1], device=ids.device) < takes[..., None]
    wrong = ((ids >= 0)[..., None] & (wanted != (objects >= 0))).nonzero()
    if len(wrong):
        row, column, _ = wrong[0].tolist()
        name = list(cells.parameters)[int(ids[row, column])]
        raise StripsError(
            f"objects hold {objects[row, column].tolist()} at row {row}, position {column}: {name!r} takes "
            f"{int(takes[row, column])} objects ({', '.join(cells.parameters[name])}), each a number from 0, and -1 at "
            "the places after them."
        )
    return objects


def find_failed(failed: Tensor | None, labels: Tensor | None, ids: Tensor) -> Tensor | None:
    """The actions that changed nothing, as bool [batch, length]; None if nothing after them could tell.

    Args:
        failed: 1 where an action is known to have failed, 0 elsewhere; None: where `labels` are 1, if there are any.
        labels: [batch, length], or None.
        ids: the actions, [batch, length], negative at padding.

    Raises:
        StripsError: `failed` of a wrong shape or with other values.
    """
    if failed is not None:
        if failed.shape != ids.shape:
            raise StripsError(f"failed must have the shape of input_ids, {list(ids.shape)}, got {list(failed.shape)}.")
        if not torch.compiler.is_compiling() and bool(((failed != 0) & (failed != 1) & (ids >= 0)).any()):
            raise StripsError("failed must be 1 where an action failed, so that it changed nothing, and 0 elsewhere.")
    elif labels is None:
        return None
    lost = (labels == 1 if failed is None else failed == 1) & (ids >= 0)
    if torch.compiler.is_compiling():
        return lost
    later = (ids >= 0).flip(1).cumsum(1).flip(1) > 1  # an action follows
    return lost if bool((lost & later).any()) else None
