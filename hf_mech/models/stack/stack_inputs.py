"""From a model's inputs to the inputs of its stacks: the place of position 0, and the padding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache

from .stack_errors import ActionError, BosError, LengthError
from .stack_layer import StackContext
from .stack_operations import check_operations


def past_length(cache: Cache | None, layer_idx: int = 0) -> int | Tensor:
    """The number of positions in a layer of a cache; a tensor for a static cache."""
    return 0 if cache is None else cache.get_seq_length(layer_idx)


def positions_of(attention_mask: Tensor | None, new: int, past: int | Tensor) -> Tensor | None:
    """The position of every new token among the tokens that are not padding, from 0, [batch, new].

    Padding before the first token has position 0. None if there is no two-dimensional mask.
    """
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    return _new((attention_mask.long().cumsum(1) - 1).clamp(min=0), new, past)


def _new(of_all: Tensor, new: int, past: int | Tensor) -> Tensor:
    """The columns of the new positions; a mask for a static cache has more columns after them."""
    return of_all.index_select(1, torch.arange(new, device=of_all.device) + past)


class PadsMasksForStaticCaches:
    """For `generate()` with a static cache: the stacks need the two-dimensional mask, always of the same shape."""

    def create_masks_for_generate(
        self, *, attention_mask: Tensor | None = None, past_key_values: Cache | None = None, **kwargs: Any
    ) -> Tensor | None:
        """The mask [batch, past + new], with zeros up to the length of the cache."""
        if attention_mask is None or past_key_values is None or attention_mask.dim() != 2:
            return attention_mask
        return nn.functional.pad(attention_mask, (0, past_key_values.get_max_length() - attention_mask.shape[1]))


def check_length(config: Any, new: int, past: int | Tensor, longest: int) -> None:
    """Raises LengthError beyond the learned positions."""
    if config.position_embedding_type != "learned" or torch.compiler.is_compiling() or int(past) + new <= longest:
        return
    raise LengthError(
        f"A sequence of {int(past) + new} tokens is longer than the {longest} positions that this model has learned; "
        "cut it, or configure another position_embedding_type: 'none', 'sinusoidal', 'relative', 'rotary' and 'alibi' "
        "have no longest length."
    )


def stack_context(
    config: Any,
    given: Tensor,
    attention_mask: Tensor | None,
    position_ids: Tensor | None,
    past: int | Tensor,
    operations: Tensor | None,
    record: list[tuple[Tensor, Tensor]] | None,
) -> StackContext:
    """The inputs that the stacks of all layers share.

    Args:
        config: has `bos_token_id`, `stack_bottom` and `multi_pop`.
        given: input ids [batch, new], or embeddings [batch, new, hidden].
        attention_mask: [batch, past + new] or longer, 0 at padding.
        position_ids: those given by the caller.
        past: the number of positions in the cache.
        operations, record: see [`StackContext`].

    Raises:
        BosError: with `stack_bottom="bos_token"`, the first token of a sequence, after its padding, is not
            `bos_token_id`; or several sequences are packed into one row. Embeddings are not checked: the caller is
            responsible. Nothing is checked under `torch.compile`.
        ActionError: operations that do not fit.
    """
    batch, new = given.shape[:2]
    context = StackContext(operations=operations, record=record)
    if attention_mask is not None and attention_mask.dim() == 2:
        first = attention_mask.long().argmax(1)
        context.start = first.where(attention_mask.any(1), attention_mask.shape[1])  # none yet: all is padding
        context.real = _new(attention_mask, new, past).bool()
    if torch.compiler.is_compiling():
        return context
    if operations is not None:
        check_operations(operations, config.multi_pop)
        if operations.shape != (batch, new):
            raise ActionError(
                f"stack_operations must be one for every position, {[batch, new]}, got {list(operations.shape)}."
            )
    if config.stack_bottom == "bos_token" and given.dim() == 2:
        _check_bos(given, context.start, int(past), config.bos_token_id)
    if attention_mask is None and position_ids is not None and (position_ids.diff(dim=-1) < 0).any():
        raise BosError(
            "position_ids begin anew within a row: sequences packed into one row would share one stack. Give every "
            "sequence a row of its own, with an attention_mask where they are padded."
        )
    return context


def _check_bos(input_ids: Tensor, start: Tensor | None, past: int, bos: int) -> None:
    if start is None:
        start = torch.zeros(len(input_ids), dtype=torch.long, device=input_ids.device)
    here = (start >= past) & (start < past + input_ids.shape[1])  # other rows began earlier, or begin later
    index = (start - past).clamp(0, input_ids.shape[1] - 1)
    first = input_ids.gather(1, index[:, None])[:, 0]
    wrong = (here & (first != bos)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise BosError(
            f"stack_bottom='bos_token': position 0 stands for the empty stack and must be the token {bos} "
            f"(bos_token_id), got {int(first[row])} in row {row}. Let the tokenizer put it there, "
            "AutoTokenizer.from_pretrained(..., add_bos_token=True), and give an attention_mask if padding comes "
            "before it; or set stack_bottom='first_token' in the configuration, so that any token can stand there."
        )
