"""What a model remembers of running episodes: the last steps of each, as tokens, and their keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .configuration_msat import MSATDecisionTransformerConfig
from .msat_cache import RowsCache
from .msat_errors import MSATError


class ActingContext:
    """The contexts of a batch of environments, one row each; made by `model.start_context`, filled by `model.act`.

    The context of a decision is the last steps of the row's own episode. When it holds `context_length` steps, the
    oldest `stride` steps leave at once before the next one enters, and the row's keys and values are computed afresh
    from the embeddings of the steps that stay. With a stride of 1 it is the plain sliding window; a larger stride
    computes afresh only every `stride` decisions, and sees from `context_length - stride + 1` to `context_length`
    steps. A row depends on its own episode alone.

    Args:
        config: the model's.
        batch_size: the number of environments.
        stride: the steps that leave a full context at once, 1 to `context_length`.
        use_cache: keep keys and values between decisions; without it, each decision reads its whole context anew.
        device, dtype: the model's.

    Attributes:
        logits: of the last decision, [rows, components, values], -inf at values that a component does not have; None
            before the first one.

    Raises:
        MSATError: a batch size or a stride that is out of range.
    """

    def __init__(
        self,
        config: MSATDecisionTransformerConfig,
        batch_size: int,
        stride: int,
        use_cache: bool,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        if not _is_whole(batch_size) or batch_size < 1:
            raise MSATError(f"batch_size must be the number of environments, at least 1, got {batch_size!r}.")
        if not _is_whole(stride) or not 1 <= stride <= config.context_length:
            raise MSATError(
                f"stride must be from 1 to context_length = {config.context_length}, got {stride!r}; it is the number "
                "of steps that leave a full context at once."
            )
        self.batch_size, self.stride = int(batch_size), int(stride)
        self.sizes = sizes_of(config)
        self.capacity, self.per_step = config.context_length, config.tokens_per_step
        tokens = self.capacity * self.per_step
        self.tokens = torch.zeros(self.batch_size, tokens, config.n_embd, device=device, dtype=dtype)
        self.cache = RowsCache(self.batch_size, tokens, config.n_layer, device) if use_cache else None
        self.logits: Tensor | None = None
        self._steps = [0] * self.batch_size  # in each row's context
        self._read = [0] * self.batch_size  # tokens whose keys and values are in the cache
        self._timesteps = [0] * self.batch_size  # of each row's next decision

    @property
    def device(self) -> torch.device:
        """Where the tokens are."""
        return self.tokens.device

    @property
    def last_step(self) -> int:
        """The number of the first token of a full context's last step."""
        return (self.capacity - 1) * self.per_step

    @property
    def steps(self) -> Tensor:
        """The steps in each row's context, [batch], on the CPU."""
        return torch.tensor(self._steps)

    @property
    def timesteps(self) -> Tensor:
        """The episode's timestep of each row's next decision, [batch], on the CPU."""
        return torch.tensor(self._timesteps)

    def begin(self, rows: Sequence[int]) -> None:
        """New episodes in these rows: nothing of the old ones remains."""
        for row in rows:
            self._steps[row] = self._read[row] = self._timesteps[row] = 0

    def make_room(self, rows: Sequence[int]) -> None:
        """Lets the oldest steps of full rows leave."""
        full = [row for row in rows if self._steps[row] == self.capacity]
        if not full:
            return
        kept = (self.capacity - self.stride) * self.per_step
        where = torch.tensor(full, device=self.device)
        self.tokens[where, :kept] = self.tokens[where, self.stride * self.per_step :]
        for row in full:
            self._steps[row] -= self.stride
            self._read[row] = 0

    def write(self, rows: Sequence[int], tokens: Tensor, first: int) -> None:
        """Puts tokens [rows, some, hidden] into the rows' newest step, the first of them at number `first` of it."""
        starts = [self._steps[row] * self.per_step + first for row in rows]
        columns = torch.tensor(starts, device=self.device)[:, None] + torch.arange(tokens.shape[1], device=self.device)
        self.tokens[torch.tensor(rows, device=self.device)[:, None], columns] = tokens.to(self.tokens.dtype)

    def to_read(self, rows: Sequence[int], until: int) -> list[tuple[list[int], list[int], int]]:
        """The rows' unread tokens up to number `until` of their newest step, in groups of equally many.

        Returns:
            for each group: the places in `rows`, the rows' first unread tokens, the number of unread tokens.
        """
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for place, row in enumerate(rows):
            start = 0 if self.cache is None else self._read[row]
            places, starts = groups.setdefault(self._steps[row] * self.per_step + until - start, ([], []))
            places.append(place)
            starts.append(start)
        return [(places, starts, new) for new, (places, starts) in groups.items()]

    def was_read(self, rows: Sequence[int], until: int) -> None:
        """Notes that the rows' tokens up to number `until` of their newest step have been read."""
        for row in rows:
            self._read[row] = self._steps[row] * self.per_step + until

    def advance(self, rows: Sequence[int], timesteps: Sequence[int]) -> None:
        """Ends a decision, made at these timesteps of the episodes."""
        for row, timestep in zip(rows, timesteps, strict=True):
            self._steps[row] += 1
            self._timesteps[row] = timestep + 1


def sizes_of(config: MSATDecisionTransformerConfig) -> tuple[int, ...]:
    """The sizes of a model's contexts."""
    return config.context_length, config.tokens_per_step, config.n_embd, config.n_layer, config.n_head


def _is_whole(number: object) -> bool:
    return hasattr(number, "__index__") and not isinstance(number, bool)
