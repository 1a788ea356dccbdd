"""Several sequences in one row: where each one begins, told by position ids, by a collator's lengths, or by a 4-D mask.

Everything here speaks of the new columns of a forward pass without a past.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .configuration_stack import StackError

#: The attention implementations that take the mask of `block_mask`.
MASKED = ("eager", "sdpa")
_HIDDEN = -1e4  # an additive mask hides a place by a number of this size or below


def take_boundaries(kwargs: dict[str, Any], shape: tuple[int, int], device: torch.device) -> Tensor | None:
    """Removes the arguments for packed rows from the keyword arguments; True where they let a sequence begin.

    `DataCollatorWithFlattening` and TRL's collator give `cu_seq_lens_q` and `cu_seq_lens_k` [sequences + 1], with
    `max_length_q` and `max_length_k`, for one row; and `seq_idx` [batch, length].

    Args:
        shape: (batch, length).

    Returns:
        [batch, length], or None if there are none of these arguments.

    Raises:
        StackError: arguments that do not fit the inputs, or each other.
    """
    names = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")
    given = {name: kwargs.pop(name) for name in names if kwargs.get(name) is not None}
    found: dict[str, Tensor] = {}
    for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
        if name in given:
            found[name] = _begins_of_lengths(torch.as_tensor(given[name]), name, shape, device)
    if "seq_idx" in given:
        index = torch.as_tensor(given["seq_idx"]).to(device)
        if index.shape != shape:
            raise StackError(f"seq_idx must be {list(shape)}, as the tokens, got {list(index.shape)}.")
        found["seq_idx"] = nn.functional.pad(index.diff(dim=1) != 0, (1, 0), value=True)
    if not found:
        return None
    (first, begins), *others = found.items()
    for name, other in others:
        if not torch.compiler.is_compiling() and not torch.equal(begins, other):
            raise StackError(f"{first} and {name} divide the row differently. Give those of one collator.")
    return begins


def _begins_of_lengths(ends: Tensor, name: str, shape: tuple[int, int], device: torch.device) -> Tensor:
    batch, length = shape
    if batch != 1 or ends.dim() != 1:
        raise StackError(
            f"{name} divides one row; input_ids has {batch} rows and {name} the shape {list(ends.shape)}. Put all "
            "sequences into one row, or give position_ids that begin anew."
        )
    ends = ends.to(device).long()
    if not torch.compiler.is_compiling():
        bounds = ends.tolist()
        if len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != length or bounds != sorted(bounds):
            raise StackError(f"{name} must rise from 0 to the row's length {length}, got {bounds}.")
    begins = torch.zeros(1, length + 1, dtype=torch.bool, device=device)
    return begins.index_fill(1, ends, True)[:, :length]


def begins_of_positions(position_ids: Tensor, real: Tensor | None, jumps: bool) -> Tensor:
    """True at real tokens whose position does not follow that of the real token before, [batch, length].

    Args:
        position_ids: [batch, length].
        real: True at tokens that are not padding, [batch, length]; None if all are.
        jumps: a jump forward begins a sequence, too, as in transformers' own self-attention where there is no mask.
    """
    if real is None:
        step = nn.functional.pad(position_ids.diff(dim=1), (1, 0), value=1)
    else:
        places = torch.arange(position_ids.shape[1], device=position_ids.device)
        last = _largest_so_far(torch.where(real, places, -1))
        before = nn.functional.pad(last[:, :-1], (1, 0), value=-1)
        step = position_ids - position_ids.gather(1, before.clamp(min=0))
        step = torch.where(real & (before >= 0), step, 1)
    return step != 1 if jumps else step < 1


def starts_of(begins: Tensor, real: Tensor | None) -> Tensor:
    """The column of position 0 of every column's sequence, [batch, length]; `length` before the first sequence.

    Args:
        begins: True where a sequence begins, [batch, length]; the first real token begins one in any case.
        real: as in [`begins_of_positions`].
    """
    length = begins.shape[1]
    places = torch.arange(length, device=begins.device)
    first = places == 0 if real is None else real & (real.long().cumsum(1) == 1)
    starts = _largest_so_far(torch.where(begins | first, places, -1))
    return torch.where(starts < 0, length, starts)


def from_first(position_ids: Tensor, real: Tensor | None, first: int) -> Tensor:
    """Positions [batch, length] that begin with `first`, the model's first position, if they were counted from 0.

    RoBERTa counts from `pad_token_id` + 1, TRL's collators and transformers' by default from 0. No real token of such a
    model has the position 0, so a 0 tells how they were counted.
    """
    if first == 0:
        return position_ids
    least = position_ids if real is None else position_ids.where(real, first)
    return position_ids + first * (least.amin() == 0)


def visible_places(mask: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """The places that any head sees, and those that all see, of a mask [1 or batch, 1 or heads, queries, keys].

    Both are [batch, queries, keys]. Boolean: True is visible. Additive: visible above -1e4; a place with a bias counts
    as one that not all heads see.
    """
    mask = mask.expand(batch, -1, -1, -1)
    if mask.dtype == torch.bool:
        return mask.any(1), mask.all(1)
    return (mask > _HIDDEN).any(1), (mask == 0).all(1)


def sequences_of_mask(sees: Tensor, same: Tensor, causal: bool) -> tuple[Tensor, Tensor, bool | None]:
    """The sequences that a mask shows, if it is made of blocks.

    Args:
        sees, same: as of [`visible_places`], [batch, length, length].
        causal: the model sees no future.

    Returns:
        The real tokens [batch, length]; True where a sequence begins [batch, length]; and whether a real token sees
        exactly its own sequence, None under `torch.compile`.
    """
    length = sees.shape[1]
    own = sees.diagonal(dim1=1, dim2=2)
    past = torch.ones(length, length, dtype=torch.bool, device=sees.device).tril()
    real = own & ~(sees & ~past).any(2) if causal else own  # masks may let padding see everything
    places = torch.arange(length, device=sees.device)
    before = nn.functional.pad(_largest_so_far(torch.where(real, places, -1))[:, :-1], (1, 0), value=-1)
    follows = sees.gather(2, before.clamp(min=0)[..., None])[..., 0] & (before >= 0)
    begins = real & ~follows
    if torch.compiler.is_compiling():
        return real, begins, None
    block = same_sequence(starts_of(begins, real)) & real[:, None]
    if causal:
        block = block & past
    exact = ((sees == block) & (same == block) | ~real[..., None]).all()
    return (real, begins, True) if exact else (own, begins, False)


def same_sequence(starts: Tensor) -> Tensor:
    """True where two columns belong to one sequence, [batch, length, length]."""
    return starts[:, :, None] == starts[:, None]


def block_mask(starts: Tensor, real: Tensor | None, causal: bool, implementation: str, dtype: torch.dtype) -> Tensor:
    """The mask of a self-attention within each sequence, [batch, 1, length, length]; padding sees itself alone.

    Raises:
        StackError: an attention implementation that takes no such mask.
    """
    if implementation not in MASKED:
        raise StackError(
            f"Several sequences in a row need a 4-D attention mask, which attn_implementation={implementation!r} does "
            "not take; use 'sdpa' or 'eager'."
        )
    visible = same_sequence(starts)
    if causal:
        visible = visible.tril()
    if real is not None:
        itself = torch.eye(starts.shape[1], dtype=torch.bool, device=starts.device)
        visible = visible & real[:, None] | itself & ~real[..., None]
    return as_implemented(visible[:, None], implementation, dtype)


def as_implemented(mask: Tensor, implementation: str, dtype: torch.dtype) -> Tensor:
    """A mask of ones and zeros as the attention takes it: additive for `eager`, which adds any mask to the scores."""
    if mask.is_floating_point():
        return mask
    mask = mask.bool()
    if implementation != "eager":
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def _largest_so_far(values: Tensor) -> Tensor:
    """The largest of each column and those before it, [batch, length]; ONNX has no cummax."""
    if not torch.compiler.is_exporting():
        return values.cummax(1).values
    columns = torch.arange(values.shape[1], device=values.device)
    return torch.where(columns <= columns[:, None], values[:, None], -1).amax(2)
