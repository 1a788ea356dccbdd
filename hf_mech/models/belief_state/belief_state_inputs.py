"""Checks of a batch before any encoder reads it. Under `torch.compile` values are not checked, only shapes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from .belief_state_errors import (
    BeliefStateError,
    LengthError,
    PackingError,
    PairError,
    PrefixError,
    SuffixError,
    VocabularyError,
)


def check_prefixes(
    input_ids: Tensor | None, inputs_embeds: Tensor | None, attention_mask: Any, position_ids: Any, past: int | None
) -> None:
    """Refuses neither or both of the inputs, masks and positions that do not fit them, and rows without any token.

    Args:
        past: the number of tokens read before these; None if it is known to the device only.
    """
    if (input_ids is None) == (inputs_embeds is None):
        raise BeliefStateError("Give either input_ids or inputs_embeds, the tokens of the prefix.")
    given = input_ids if inputs_embeds is None else inputs_embeds
    assert given is not None
    wanted = 2 if inputs_embeds is None else 3
    if given.dim() != wanted:
        raise BeliefStateError(
            f"input_ids must be [batch, length] and inputs_embeds [batch, length, hidden], got {list(given.shape)}."
        )
    if given.shape[1] == 0:
        raise PrefixError(
            "The prefix is empty: input_ids has no column. Begin with bos_token_id, or with the first token of a text."
        )
    batch, columns = given.shape[:2]
    if isinstance(position_ids, Tensor) and (
        position_ids.is_floating_point() or position_ids.shape not in ((columns,), (1, columns), (batch, columns))
    ):
        raise LengthError(
            f"position_ids must be whole numbers, [{batch}, {columns}] as the tokens, got "
            f"{list(position_ids.shape)} of {position_ids.dtype}."
        )
    if isinstance(attention_mask, Tensor) and attention_mask.dim() not in (2, 4):
        raise PrefixError(
            f"attention_mask must be [batch, length], or four-dimensional, got {list(attention_mask.shape)}."
        )
    if attention_mask is None or past is None or not is_flat(attention_mask):
        return
    if attention_mask.shape != (batch, past + columns):
        raise PrefixError(
            f"attention_mask must be {[batch, past + columns]}, a number for each token, those of the cache included, "
            f"got {list(attention_mask.shape)}."
        )
    if past > 0 or torch.compiler.is_compiling():
        return
    if not bool(((attention_mask == 0) | (attention_mask == 1)).all()):
        raise PrefixError(
            f"attention_mask must be 0 at padding, else 1, got numbers from {attention_mask.min()} to "
            f"{attention_mask.max()}. For several sequences in a row give position_ids that begin anew."
        )
    if not bool(attention_mask.any(1).all()):
        raise PrefixError(
            "A row has an empty prefix: its attention_mask is 0 everywhere. Leave it out, or begin it with "
            "bos_token_id."
        )


def check_ids(ids: Tensor, vocabulary: int | None, name: str) -> None:
    """Refuses tokens outside the vocabulary; a lookup on a GPU would end the process."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise VocabularyError(f"{name} must be whole numbers, torch.int64 or torch.int32, got {ids.dtype}.")
    if vocabulary is None or torch.compiler.is_compiling() or not ids.numel():
        return
    least, most = (int(bound) for bound in ids.aminmax())
    if least < 0 or most >= vocabulary:
        raise VocabularyError(
            f"{name} must be tokens from 0 to {vocabulary - 1}, got {least if least < 0 else most}; use the tokenizer "
            "that the model was trained with, or call model.resize_token_embeddings(len(tokenizer))."
        )


def check_labels(labels: Tensor | None, num_items_in_batch: Any) -> None:
    """Refuses a trained batch without its labels: `Trainer` keeps them for a loss of its own on `logits`.

    Such a loss trains the next token after the empty suffix alone.
    """
    if labels is None and num_items_in_batch is not None:
        raise PairError(
            "num_items_in_batch is given without labels, so the loss over all pairs cannot be computed. Trainer keeps "
            "the labels with label_smoothing_factor or compute_loss_func, whose losses see the next token alone; leave "
            "both out. For a loss of your own, override Trainer.compute_loss."
        )


def check_suffixes(suffix_ids: Tensor | None, mask: Tensor | None, batch: int, reads: bool) -> None:
    """Refuses suffixes of another number of rows, a mask without suffixes, and suffixes that no encoder reads.

    Args:
        reads: the model has a backward encoder.
    """
    if suffix_ids is None:
        if mask is not None:
            raise SuffixError("suffix_attention_mask is given without suffix_ids; give both, or none.")
        return
    check_backward(reads, "suffix_ids")
    if suffix_ids.dim() != 2 or len(suffix_ids) != batch:
        raise SuffixError(
            f"suffix_ids must be [batch, suffix length] with {batch} rows, one for each prefix, got "
            f"{list(suffix_ids.shape)}; repeat a common suffix with suffix_ids.expand({batch}, -1)."
        )


def check_suffix_state(state: Tensor | None, batch: int, size: int, reads: bool, other: bool) -> None:
    """Refuses states that do not fit the prefixes, or beside what they would replace.

    Args:
        size: of a state.
        reads: the model has a backward encoder.
        other: there are suffix_ids or labels too.
    """
    if state is None:
        return
    check_backward(reads, "suffix_state")
    if other:
        raise SuffixError("suffix_state stands in place of suffix_ids, and labels need none; give one of them.")
    if state.shape not in ((1, 1, size), (batch, 1, size)):
        raise SuffixError(
            f"suffix_state must be [{batch}, 1, {size}] or [1, 1, {size}], as model.suffix_state(suffix_ids) gives it, "
            f"got {list(state.shape)}."
        )


def check_backward(reads: bool, name: str) -> None:
    """Refuses an argument that only a backward encoder reads."""
    if not reads:
        raise SuffixError(
            f"This model has no backward encoder (use_backward=False), so no suffix can condition it; leave {name} "
            "out, or load a model with one."
        )


def check_length(positions: Tensor | None, columns: int, limit: int | None, text: str) -> None:
    """Refuses positions that an encoder has not learned.

    Args:
        positions: of the tokens, from 0; None if they count the columns.
        columns: all that the encoder has read with these.
        limit: the number of its learned positions; None without any.
        text: "prefix" or "suffix".
    """
    if limit is None or torch.compiler.is_compiling():
        return
    last = columns - 1
    if positions is not None:
        least, last = (int(bound) for bound in positions.aminmax()) if positions.numel() else (0, 0)
        if least < 0:
            raise LengthError(f"position_ids must be 0 or more, got {least}.")
    if last >= limit:
        whole = "With labels, the whole text and its end token are a suffix. " if text == "suffix" else ""
        raise LengthError(
            f"A {text} has {last + 1} positions, but its encoder has learned {limit}. Each encoder counts from its own "
            f"end of the text, so prefix and suffix may have {limit} each, the end token included. {whole}Cut the "
            f"{text}, or use an encoder with rotary positions."
        )


def check_packing(config: Any, batch: int, use_cache: bool | None = None, suffix_ids: Tensor | None = None) -> None:
    """Refuses several sequences in a row with a cache, with suffixes, or with attention that takes one row only.

    Args:
        config: the encoder's.
        batch: the number of rows.
    """
    said = "position_ids begin anew within a row, so it holds several sequences"
    if suffix_ids is not None:
        raise PackingError(f"{said}, and suffix_ids are one a row; give one sequence a row.")
    if use_cache:
        raise PackingError(f"{said}, and a cache holds one; use_cache=False.")
    if batch > 1 and "flash" in (config._attn_implementation or ""):
        raise PackingError(
            f"{said}. With attn_implementation={config._attn_implementation!r} that needs a batch of one row; put all "
            "sequences into it, or use 'sdpa'."
        )


def is_flat(attention_mask: Any) -> bool:
    """Whether a mask is [batch, length] or None; for a static cache, transformers makes masks of four dimensions."""
    return attention_mask is None or (isinstance(attention_mask, Tensor) and attention_mask.dim() == 2)


def seen(past_key_values: Cache | None) -> int | None:
    """The number of tokens that a cache holds; None if it is known to the device only."""
    if past_key_values is None:
        return 0
    length = past_key_values.get_seq_length()
    return length if isinstance(length, int) else None
