"""The cache of a DAT: the whole state of every cell at every layer, not keys and values, (71)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from .dat_errors import DATInputError
from .dat_history import History


class DATCache(Cache):
    """The cells' states between the steps of `generate()`. Registers that a layer does not change use no memory."""

    is_compileable = False

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.history: History[Any] = History()
        self.tokens = 0
        self.keys: Tensor | None = None  # each token's cell, see `States`

    def keys_with(self, ranks: Tensor) -> Tensor:
        """The cells of all tokens so far, and of further words, numbered by `ranks` [batch, length] or -1."""
        assert self.keys is not None
        return torch.cat([self.keys, torch.where(ranks >= 0, ranks + self.history.width, -1)], 1)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The number of tokens read so far, including padding."""
        return self.tokens

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """-1: it grows."""
        return -1

    def get_max_cache_shape(self, layer_idx: int | None = None) -> int:
        """The name of `get_max_length` before transformers 5.23."""
        return self.get_max_length(layer_idx)

    @property
    def is_initialized(self) -> bool:
        return bool(self.history.groups)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keeps these rows of the batch, in this order."""
        self._select(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps these rows of the batch, in this order."""
        self._select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats every row."""
        if self.keys is not None:
            self._select(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def crop(self, tokens_to_remove: int) -> None:
        """Removes the last tokens; their number is given as a negative number, as in all caches.

        Raises:
            DATInputError: a positive number, or one that reaches into the prompt, which is parsed as a whole.
        """
        behind = max(0, len(self.history.groups) - 1)
        if tokens_to_remove > 0 or -tokens_to_remove > behind:
            raise DATInputError(
                f"tokens_to_remove must be between {-behind} (minus the tokens after the prompt) and 0, got "
                f"{tokens_to_remove}; to forget the prompt, call reset()."
            )
        if tokens_to_remove < 0:
            del self.history.groups[tokens_to_remove:]
            self.tokens += tokens_to_remove
            self.keys = None if self.keys is None else self.keys[:, : self.tokens]

    def reset(self) -> None:
        """Removes everything."""
        self.history, self.tokens, self.keys = History(), 0, None

    def _select(self, rows: Tensor) -> None:
        if self.keys is not None:
            self.history.groups = [group.select(rows) for group in self.history.groups]
            self.keys = self.keys.index_select(0, rows.to(self.keys.device))

    def memory(self) -> int:
        """The bytes of all states held."""
        found: dict[int, int] = {}
        for group in self.history.groups:
            found |= group.memory()
        return sum(found.values()) + (0 if self.keys is None else self.keys.numel() * self.keys.element_size())


def as_dat_cache(cache: object) -> DATCache:
    """The cache itself.

    Raises:
        DATInputError: it is a cache of another kind.
    """
    if not isinstance(cache, DATCache):
        raise DATInputError(
            f"past_key_values must be a DATCache, got {type(cache).__name__}; leave it out, and generate() makes one."
        )
    return cache
