"""Texts as tokens of a checkpoint, for the views of language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .views.errors import ExplorerError

MOST_TOKENS = 40
"""More do not fit a page."""


def load_with_tokenizer(auto_class: Any, source: str) -> tuple[Any, Any]:
    """A model in evaluation mode, and its tokenizer.

    Raises:
        ExplorerError: there is no such checkpoint, or it has no tokenizer.
    """
    from transformers import AutoTokenizer

    try:
        return auto_class.from_pretrained(source).eval(), AutoTokenizer.from_pretrained(source)
    except OSError as error:
        raise ExplorerError(f"{source!r} is no checkpoint with a tokenizer that can be loaded: {error}") from error


def token_ids(tokenizer: Any, text: str, least: int = 1, **options: Any) -> Tensor:
    """A text as token ids, [1, tokens].

    Args:
        tokenizer: of the checkpoint.
        text: as a person writes it.
        least: number of tokens.
        options: of the tokenizer.

    Raises:
        ExplorerError: a text of fewer tokens, or of more than `MOST_TOKENS`, or with unknown symbols.
    """
    try:
        ids = tokenizer(text, return_tensors="pt", **options)["input_ids"]
    except Exception as error:  # tokenizers raises plain ones
        raise ExplorerError(f"the tokenizer cannot read {text!r}: {error}") from error
    if not least <= ids.shape[1] <= MOST_TOKENS:
        raise ExplorerError(f"give a text of {least} to {MOST_TOKENS} tokens, got {ids.shape[1]}")
    return ids.long()


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Tokens as a page shows them; spaces and line breaks are visible."""
    return [token.replace("Ġ", "␣").replace("Ċ", "⏎") for token in tokenizer.convert_ids_to_tokens(ids)]


__all__ = ["MOST_TOKENS", "load_with_tokenizer", "token_ids", "token_texts"]
