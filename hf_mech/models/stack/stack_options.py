"""The options that both configurations share, and their checks."""

from __future__ import annotations

from typing import Any

from .stack_errors import BosError, EncodingError, StackError

#: The place of the encoding: added to the embeddings ("none" adds nothing), or inside every self-attention.
EMBEDDED = ("learned", "none", "sinusoidal")
ATTENDED = ("relative", "rotary", "alibi")

#: The least and the largest of the sizes that a configuration may have: of tables, of vectors, and the layers.
SIZES, WIDTHS, LAYERS = (1, 100_000_000), (1, 1_000_000), (1, 1_000)


def check_options(config: Any) -> None:
    """Refuses invalid options.

    Raises:
        EncodingError: an unknown `position_embedding_type`, or one that does not fit the sizes.
        BosError: `stack_bottom="bos_token"` without a `bos_token_id`.
        StackError: `hidden_size` cannot be divided among the heads, or options that contradict each other.
    """
    encoding = config.position_embedding_type
    if encoding not in EMBEDDED + ATTENDED:
        raise EncodingError(
            f"position_embedding_type must be one of {', '.join(EMBEDDED + ATTENDED)}, got {encoding!r}."
        )
    if config.hidden_size % config.num_attention_heads:
        raise StackError(
            f"hidden_size must be a multiple of num_attention_heads, got {config.hidden_size} and "
            f"{config.num_attention_heads}."
        )
    if encoding in ATTENDED and getattr(config, "reorder_and_upcast_attn", False):
        raise EncodingError(
            f"position_embedding_type={encoding!r} has no attention that is reordered and upcast; set "
            "reorder_and_upcast_attn=False."
        )
    if encoding == "sinusoidal" and config.hidden_size % 2:
        raise EncodingError(f"Sinusoidal positions need an even hidden_size, got {config.hidden_size}.")
    if encoding == "rotary" and config.hidden_size // config.num_attention_heads % 2:
        raise EncodingError(
            "Rotary positions need an even size of every head, got "
            f"{config.hidden_size} / {config.num_attention_heads} = {config.hidden_size // config.num_attention_heads}."
        )
    for name in ("stack_inner_size", "num_stack_loops"):
        if config.stack_values != "recurrent" and getattr(config, name) is not None:
            raise StackError(
                f"{name}={getattr(config, name)} is of recurrent values: set stack_values='recurrent', or leave it out."
            )
    if config.stack_values == "recurrent" and config.multi_pop != 1:
        raise StackError(
            f"stack_values='recurrent' pops one value a step: multi_pop must be 1, got {config.multi_pop}."
        )
    if config.use_stack and config.stack_bottom == "bos_token" and config.bos_token_id is None:
        raise BosError(
            "stack_bottom='bos_token' asks for bos_token_id at the bottom of every stack, but bos_token_id is None. "
            "Set it to the id of the token that begins every sequence (Section 3.2), or set "
            "stack_bottom='first_token', which takes any token."
        )
