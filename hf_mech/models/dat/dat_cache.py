"""The cache of a DAT: the whole state of every cell at every layer, not keys and values, (71)."""

from __future__ import annotations

from collections.abc import Callable

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
        self.history = History()
        self.tokens = 0
        self.keys: Tensor | None = None  # each token's cell, see `States`

    def keys_with(self, ranks: Tensor) -> Tensor:
        """The cells of all tokens so far, and of further words, numbered by `ranks` [batch, length] or -1."""
        assert self.keys is not None
        cells = sum(group.exists.shape[1] for group in self.history.groups)
        return torch.cat([self.keys, torch.where(ranks >= 0, ranks + cells, -1)], 1)

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
        self._map(lambda tensor: tensor.index_select(0, beam_idx.to(tensor.device)))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps these rows of the batch, in this order."""
        self._map(lambda tensor: tensor[indices])

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats every row."""
        self._map(lambda tensor: tensor.repeat_interleave(repeats, 0))

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

    def _map(self, function: Callable[[Tensor], Tensor]) -> None:
        self.history.groups = [group.map(function) for group in self.history.groups]
        self.keys = None if self.keys is None else function(self.keys)

    def memory(self) -> int:
        """The bytes of all tensors held."""
        found: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            found[id(tensor)] = tensor.numel() * tensor.element_size()
            return tensor

        self._map(count)
        return sum(found.values())


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


__all__ = ["DATCache"]
