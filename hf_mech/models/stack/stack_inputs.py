"""From a model's inputs to the inputs of its stacks: the place of position 0, the padding, the sequences of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from .configuration_stack import StackError
from .stack_layer import StackContext
from .stack_operations import check_operations
from .stack_packing import (
    MASKED,
    as_implemented,
    begins_of_positions,
    block_mask,
    from_first,
    same_sequence,
    sequences_of_mask,
    starts_of,
    take_boundaries,
    visible_places,
)


def past_length(cache: Cache | None, layer_idx: int = 0) -> int | Tensor:
    """The number of positions in a layer of a cache; a tensor for a static cache."""
    return 0 if cache is None else cache.get_seq_length(layer_idx)


def positions_of(attention_mask: Tensor | None, new: int, past: int | Tensor) -> Tensor | None:
    """The position of every new token among the tokens that are not padding, from 0, [batch, new].

    Padding before the first token has position 0. None if there is no two-dimensional mask.
    """
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    return new_columns((attention_mask.long().cumsum(1) - 1).clamp(min=0), new, past)


def new_columns(of_all: Tensor, new: int, past: int | Tensor) -> Tensor:
    """The columns of the new positions; a mask for a static cache has more columns after them."""
    return of_all.index_select(1, torch.arange(new, device=of_all.device) + past)


def check_length(
    config: Any, position_ids: Tensor | None, given: bool, new: int, past: int | Tensor, first: int = 0
) -> None:
    """Raises StackError beyond the learned positions; nothing is checked under `torch.compile`.

    Args:
        position_ids: [batch, new], from `first`; None if they count the columns.
        given: the caller gave them. If not, they cannot exceed the number of columns.
        first: the first learned position.
    """
    if config.position_embedding_type != "learned" or torch.compiler.is_compiling():
        return
    count, table = int(past) + new, config.max_position_embeddings
    if not given and count <= table - first:
        return
    if position_ids is not None:
        low, high = (int(bound) for bound in position_ids.aminmax())
        if low >= 0 and high < table:
            return
        if given:
            raise StackError(
                f"position_ids go from {low} to {high}, but this model has learned the positions {first} to "
                f"{table - 1}; count them from {first}, and cut longer sequences."
            )
        count = high + 1 - first
    raise StackError(
        f"A sequence of {count} tokens is longer than the {table - first} positions that this model has learned; "
        "cut it, or configure another position_embedding_type: 'none', 'sinusoidal', 'relative', 'rotary' and 'alibi' "
        "have no longest length."
    )


def model_inputs(
    config: Any,
    given: Tensor,
    attention_mask: Tensor | None,
    position_ids: Tensor | None,
    cache: Cache | None,
    kwargs: dict[str, Any],
    **options: Any,
) -> tuple[Tensor | None, Tensor | None]:
    """The mask and the position ids of a forward pass; `kwargs` gets the context of the stacks, if the model has any.

    The arguments are those of [`stack_inputs`].
    """
    if not config.use_stack:
        for name in ("stack_operations", "stack_record"):
            kwargs.pop(name, None)
        return vanilla_inputs(config, given, attention_mask, position_ids, cache, kwargs, **options)
    context, attention_mask, position_ids = stack_inputs(
        config, given, attention_mask, position_ids, cache, kwargs, **options
    )
    kwargs["stack_context"] = context
    return attention_mask, position_ids


def stack_inputs(
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
    blocks: Callable[[Tensor, Tensor | None], Any] | None = None,
) -> tuple[StackContext, Any, Tensor | None]:
    """The inputs that the stacks of all layers share, and the mask and the positions that go with them.

    Several sequences in a row are recognised by position ids that begin anew; by the boundaries that a collator gives
    (`cu_seq_lens_q`, `seq_idx`); or by a mask of blocks. Each has its own stack, positions and self-attention.

    Args:
        config: has `bos_token_id`, `stack_bottom` and `multi_pop`.
        given: input ids [batch, new], or embeddings [batch, new, hidden].
        attention_mask: [batch, past + new] or longer, 0 at padding; or [batch, new, past + new], or
            [batch, heads, new, past + new], 1 or True where a token sees another, or additive.
        position_ids: [batch, new], [1, new] or [new], or None. Without a cache they may also be counted from 0.
        cache: with any number of positions in it.
        kwargs: the stacks' own arguments and a collator's boundaries are taken out.
        causal: a token sees no future.
        dtype: of an additive mask.
        first: the model's first position.
        blocks: makes the mask of several sequences in a row from `starts` and `real` of the context; by default
            [`block_mask`].

    Returns:
        The context; the mask; the position ids, None if they count the columns.

    Raises:
        StackError: with `stack_bottom="bos_token"`, the first token of a sequence, after its padding, is not
            `bos_token_id` (embeddings are not checked: the caller is responsible); it is unknown where the sequences of
            a row begin, or a cache or a head cannot have several; operations that do not fit.
        Under `torch.compile` nothing is checked.
    """
    (batch, new), past = given.shape[:2], past_length(cache)
    context = StackContext(operations=kwargs.pop("stack_operations", None), record=kwargs.pop("stack_record", None))
    of_rows = kwargs.pop("stack_of_rows", False)
    boundaries = take_boundaries(kwargs, (batch, new), given.device)
    if position_ids is not None:
        position_ids = position_ids.view(-1, new).expand(batch, -1)
    if attention_mask is not None and attention_mask.dim() > 2:
        mask = attention_mask if attention_mask.dim() == 4 else attention_mask[:, None]
        if torch.compiler.is_compiling() or int(past) == 0:
            begins = _read_mask(context, mask, boundaries, position_ids, causal)
        else:
            begins = None
            _read_continuing_mask(context, mask, int(past))
        attention_mask = as_implemented(mask, config._attn_implementation, dtype)
    else:
        if attention_mask is not None and not _all_real(attention_mask, new, past):
            start = attention_mask.long().argmax(1)
            context.start = start.where(attention_mask.any(1), attention_mask.shape[1])  # none yet: all is padding
            context.real = new_columns(attention_mask, new, past).bool()
        begins = told_begins(boundaries, position_ids, context.real, jumps=attention_mask is None and cache is None)
    if begins is not None and holds_several(config, begins, context.real, cache, of_rows):
        context.starts = starts_of(begins, context.real)
        if attention_mask is None or attention_mask.dim() == 2:
            if blocks is None:
                implementation = config._attn_implementation
                attention_mask = block_mask(context.starts, context.real, causal, implementation, dtype)
            else:
                attention_mask = blocks(context.starts, context.real)
    if position_ids is None:
        position_ids = positions_in_sequences(context, attention_mask, new, past)
        position_ids = None if position_ids is None else position_ids + first
    elif cache is None:
        position_ids = from_first(position_ids, context.real, first)
    if not torch.compiler.is_compiling():
        _check(config, given, context, int(past))
    return context, attention_mask, position_ids


def _all_real(attention_mask: Tensor, new: int, past: int | Tensor) -> bool:
    """Whether a mask [batch, past + new] or longer says nothing; False under `torch.compile`, which does not look."""
    if torch.compiler.is_compiling():
        return False
    length = int(past) + new
    return bool((attention_mask if attention_mask.shape[1] == length else attention_mask[:, :length]).all())


def told_begins(
    boundaries: Tensor | None, position_ids: Tensor | None, real: Tensor | None, jumps: bool = False
) -> Tensor | None:
    """Where sequences begin, besides the first one of a row, [batch, new]; None if nothing tells."""
    if position_ids is None or position_ids.shape[1] == 1:
        return boundaries
    anew = begins_of_positions(position_ids, real, jumps and boundaries is None)
    if boundaries is None:
        return anew
    if not torch.compiler.is_compiling() and (anew & ~boundaries).any():
        raise StackError(
            "position_ids begin anew within a sequence of cu_seq_lens_q, of seq_idx or of the mask's blocks. Give "
            "position_ids that begin anew only where a sequence begins."
        )
    return boundaries


def holds_several(config: Any, begins: Tensor, real: Tensor | None, cache: Cache | None, of_rows: bool) -> bool:
    """Whether a row holds several sequences; under `torch.compile`, whether it could."""
    if torch.compiler.is_compiling():
        return cache is None and config._attn_implementation in MASKED
    columns = torch.arange(begins.shape[1], device=begins.device)
    further = begins & (columns > 0) if real is None else begins & real & (real.long().cumsum(1) > 1)
    if not further.any():
        return False
    if of_rows:
        raise StackError(
            "The head gives one answer for every row, but a row holds several sequences. Give every sequence a row of "
            "its own, with an attention_mask where they are padded."
        )
    if cache is not None:
        raise StackError(
            "Several sequences in a row cannot be computed with a cache: new tokens would continue the last one alone. "
            "Give no past_key_values; to generate, give every sequence a row of its own, with an attention_mask where "
            "they are padded."
        )
    return True


def _read_mask(
    context: StackContext, mask: Tensor, boundaries: Tensor | None, position_ids: Tensor | None, causal: bool
) -> Tensor:
    """Sets `real` and `start` of the context by a mask [batch, heads, new, keys]; returns where sequences begin."""
    batch, new = mask.shape[0], mask.shape[2]
    batch = batch if position_ids is None else max(batch, len(position_ids))
    sees, same = visible_places((mask if mask.is_floating_point() else mask.bool())[..., :new], batch)
    real, begins, exact = sequences_of_mask(sees, same, causal)
    told = told_begins(boundaries, position_ids, real)
    if exact is None:
        begins = begins if told is None else begins | told
    elif exact:
        first = real & (real.long().cumsum(1) == 1)
        told_begins(begins | first, position_ids, real)
        if boundaries is not None and ((boundaries | first) != (begins | first))[real].any():
            raise StackError("cu_seq_lens_q or seq_idx and the blocks of attention_mask divide the row differently.")
    elif told is None:
        raise StackError(
            "The 4-D attention_mask does not tell the sequences of a row: a token must see exactly the tokens of its "
            "own sequence (in a causal model: those up to itself). Masks are boolean, or additive with 0 for visible. "
            "For any other mask give position_ids that begin anew with every sequence."
        )
    else:
        begins = told
        if (sees & ~same_sequence(starts_of(begins, real)) & real[..., None]).any():
            raise StackError(
                "The 4-D attention_mask lets tokens see another sequence: position_ids begin anew where the mask does "
                "not. Mask the other sequences, or count the positions on."
            )
    context.real = real
    context.start = real.long().argmax(1).where(real.any(1), new)
    return begins


def _read_continuing_mask(context: StackContext, mask: Tensor, past: int) -> None:
    """The same with a cache: every row must go on with one sequence."""
    new = mask.shape[2]
    sees, same = visible_places((mask if mask.is_floating_point() else mask.bool())[..., : past + new], mask.shape[0])
    columns = torch.arange(past + new, device=mask.device)
    real = sees[:, :, past:].diagonal(dim1=1, dim2=2)
    starts = torch.where(real, sees.long().argmax(2), past + new)
    context.real, context.start = real, starts.amin(1)
    own = (columns >= context.start[:, None, None]) & (columns <= columns[past:, None])
    if ((sees != own) | (same != own))[real].any():
        raise StackError(
            "With a cache, a 4-D attention_mask must let every new token see all tokens of its sequence up to itself, "
            "and a row can hold only one. Give an attention_mask [batch, past + new] with 0 at padding."
        )


def positions_in_sequences(
    context: StackContext, attention_mask: Tensor | None, new: int, past: int | Tensor
) -> Tensor | None:
    """The positions of the new tokens in their sequences, from 0; None if they count the columns."""
    if context.starts is None:
        if context.real is None:
            return None
        if attention_mask is None or attention_mask.dim() == 2:
            return positions_of(attention_mask, new, past)
        if not torch.compiler.is_compiling() and int(past):
            assert context.start is not None  # set with `real`
            columns = torch.arange(new, device=context.real.device) + past
            return (columns - context.start[:, None]).clamp(min=0)
        return (context.real.long().cumsum(1) - 1).clamp(min=0)
    real = torch.ones_like(context.starts) if context.real is None else context.real.long()
    count = real.cumsum(1)
    return (count - count.gather(1, context.starts.clamp(max=new - 1))).clamp(min=0)


def _check(config: Any, given: Tensor, context: StackContext, past: int) -> None:
    if context.operations is not None:
        check_operations(context.operations, config.multi_pop)
        if context.operations.shape != given.shape[:2]:
            raise StackError(
                f"stack_operations must be one for every position, {list(given.shape[:2])}, got "
                f"{list(context.operations.shape)}."
            )
    if config.stack_bottom == "bos_token" and given.dim() == 2:
        _check_bos(given, context, past, config.bos_token_id)


def _check_bos(input_ids: Tensor, context: StackContext, past: int, bos: int) -> None:
    columns = torch.arange(input_ids.shape[1], device=input_ids.device) + past
    if context.starts is not None:
        bottom = context.starts == columns
    else:
        bottom = columns == (0 if context.start is None else context.start[:, None])
    wrong = (bottom & (input_ids != bos)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise StackError(
            f"stack_bottom='bos_token': position 0 stands for the empty stack and must be the token {bos} "
            f"(bos_token_id), got {int(input_ids[row, column])} in row {row}. Let the tokenizer put it there, "
            "AutoTokenizer.from_pretrained(..., add_bos_token=True), and give an attention_mask if padding comes "
            "before it; or set stack_bottom='first_token' in the configuration, so that any token can stand there."
        )


# ---------------------------------------------------------------- a model without stacks, the vanilla baseline


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
        StackError: contradictory boundaries, or a cache for several sequences in a row.
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
