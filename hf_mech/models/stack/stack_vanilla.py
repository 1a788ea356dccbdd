"""Several sequences in a row for a model without stacks, the vanilla baseline: the same rows as with stacks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from .stack_inputs import holds_several, new_columns, past_length, positions_in_sequences, told_begins
from .stack_layer import StackContext
from .stack_packing import MASKED, block_mask, from_first, starts_of, take_boundaries


def vanilla_inputs(
    config: Any,
    given: Tensor,
    attention_mask: Tensor | None,
    position_ids: Tensor | None,
    cache: Cache | None,
    kwargs: dict[str, Any],
    *,
    causal: bool,
    dtype: torch.dtype,
    first: int = 0,
) -> tuple[Tensor | None, Tensor | None]:
    """Mask and positions for rows of several sequences; those of all other rows are left as they are, as in the stock
    model, which mixes the sequences if it makes a cache, or if they are told by a collator's lengths.

    The arguments are those of `stack_inputs`. Masks of four dimensions, and attention implementations that take the
    boundaries themselves, are left to transformers.

    Raises:
        PackingError: contradictory boundaries, or a cache for several sequences in a row.
    """
    if config._attn_implementation not in MASKED or (attention_mask is not None and attention_mask.dim() > 2):
        return attention_mask, position_ids
    (batch, new), past = given.shape[:2], past_length(cache)
    context = StackContext(real=None if attention_mask is None else new_columns(attention_mask, new, past).bool())
    boundaries = take_boundaries(kwargs, (batch, new), given.device)
    places = None if position_ids is None else position_ids.view(-1, new).expand(batch, -1)
    begins = told_begins(boundaries, places, context.real, jumps=attention_mask is None and cache is None)
    if begins is None or not holds_several(config, begins, context.real, cache, of_rows=False):
        return attention_mask, position_ids
    context.starts = starts_of(begins, context.real)
    if places is None:
        counted = positions_in_sequences(context, None, new, past)
        places = None if counted is None else counted + first
    else:
        places = from_first(places, context.real, first)
    return block_mask(context.starts, context.real, causal, config._attn_implementation, dtype), places
