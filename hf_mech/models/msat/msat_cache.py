"""A cache of keys and values whose rows are at different places, for environments whose episodes do not keep step."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class RowsLayer(CacheLayerMixin):
    """One layer: [batch, capacity, heads, head dimension], every row filled up to a place of its own."""

    is_sliding = False
    is_compileable = False

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Makes room for all rows; `key_states` are [rows, heads, new, head dimension]."""
        _, heads, _, size = key_states.shape
        shape = self.places.batch, self.places.capacity, heads, size
        self.keys, self.values = key_states.new_zeros(shape), value_states.new_zeros(shape)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes the new keys and values of the chosen rows; returns theirs, [rows, heads, longest, dimension].

        They keep the precision of the first ones, and come in that of the new ones: autocast may begin and end between
        two decisions.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        rows, columns, length = self.places.rows, self.places.columns, self.places.length
        dtype = key_states.dtype
        self.keys[rows[:, None], columns] = key_states.transpose(1, 2).to(self.keys.dtype)
        self.values[rows[:, None], columns] = value_states.transpose(1, 2).to(self.values.dtype)
        keys, values = (
            (kept[:, :length] if self.places.whole else kept[rows, :length]) for kept in (self.keys, self.values)
        )
        return keys.transpose(1, 2).to(dtype), values.transpose(1, 2).to(dtype)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The keys that the next queries see, and where they begin."""
        return self.places.length, 0

    def get_seq_length(self) -> int:
        """0: rows are of different lengths, which `Places` knows."""
        return 0

    def get_max_length(self) -> int:
        """The tokens of a whole context."""
        return self.places.capacity

    def get_max_cache_shape(self) -> int:
        """The name of `get_max_length` before transformers 5.23."""
        return self.get_max_length()


class Places:
    """Which rows of a batch write next, and where; the same for all layers."""

    def __init__(self, batch: int, capacity: int, device: torch.device) -> None:
        self.batch, self.capacity, self.device = batch, capacity, device
        self.rows = self.columns = torch.empty(0, dtype=torch.long, device=device)
        self.length = 0
        self.whole = False  # whether these are all rows, in order

    def choose(self, rows: list[int], starts: list[int], new: int) -> None:
        """`new` tokens in each of these rows, from these places on."""
        self.rows = torch.tensor(rows, device=self.device)
        self.whole = rows == list(range(self.batch))
        self.columns = torch.tensor(starts, device=self.device)[:, None] + torch.arange(new, device=self.device)
        self.length = max(starts) + new

    def mask(self, dtype: torch.dtype) -> Tensor:
        """0 where a query sees a key and the least number elsewhere, [rows, 1, new, length]."""
        seen = torch.arange(self.length, device=self.device) <= self.columns[:, :, None]
        mask = torch.zeros(seen.shape, dtype=dtype, device=self.device)
        return mask.masked_fill(~seen, torch.finfo(dtype).min)[:, None]


class RowsCache(Cache):
    """The cache of a whole decoder."""

    is_compileable = False

    def __init__(self, batch: int, capacity: int, layers: int, device: torch.device) -> None:
        self.places = Places(batch, capacity, device)
        super().__init__(layers=[RowsLayer(self.places) for _ in range(layers)])
