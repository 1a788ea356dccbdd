"""The cache of every layer's stack: what all positions so far did to it and hold on it, and its levels now.

When a layer first runs, its layer of the cache is replaced by one that also holds a [`StackState`]. So the caches of
`generate()` or of a user (`DynamicCache`, `StaticCache`) work unchanged, and beam search, cropping and repeating act
on the stack together with the keys and values. The memory grows with the length.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from .configuration_stack import StackError
from .stack_attention import stack_attention
from .stack_levels import Levels, next_levels


def is_trained(*tensors: Tensor) -> bool:
    """Whether gradients are to flow into one of them."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class StackState:
    """The stack of one layer while generating. It grows by doubling, so a new token copies little.

    The levels are built when they are first asked for, so that a forward pass which makes a cache in passing does
    nothing for them. No gradient flows into the stored tensors.

    Attributes:
        length: the positions so far; a fixed state has no count of its own.
        begun: whether there are positions.
        actions: of all positions, [batch, capacity, 2 + K].
        values: what they hold, [batch, capacity, hidden + 1]; the last column is 1.

    Args:
        drop: levels that are not reached with a greater probability may be left out, see [`Levels`].
    """

    actions: Tensor
    values: Tensor

    def __init__(self, drop: float = 0.0) -> None:
        self.length, self.begun = 0, False
        self.several = False  # True if rows hold several sequences
        self.levels = Levels(drop)

    def check_one_sequence(self) -> None:
        """Raises StackError if the stored rows hold several sequences."""
        if self.several:
            raise StackError(
                "The cache holds rows of several sequences, and new tokens would continue the last one alone. To "
                "generate, give every sequence a row of its own, with an attention_mask where they are padded."
            )

    def add(
        self, actions: Tensor, values: Tensor, start: Tensor | None, length: int | Tensor = 0, *, several: bool = False
    ) -> None:
        """Adds new positions after the first `length`.

        Args:
            actions: [batch, new, 2 + K].
            values: what the new positions hold, [batch, new, hidden].
            start: the column of position 0 in every row, [batch]; None means 0.
            length: the number of stored positions.
            several: rows hold several sequences; such a state cannot be extended.
        """
        actions, values = actions.detach(), values.detach()
        self.several = several and not torch.compiler.is_compiling()  # a compiled model does not look at positions
        first, self.length = self.length, self.length + actions.shape[1]
        if not self.begun:
            self.begun, self.actions, self.values = True, actions.clone(), pad(values, (0, 1), value=1)
            return
        if self.length > self.actions.shape[1]:
            more = (0, 0, 0, 2 * self.length - self.actions.shape[1])
            self.actions, self.values = pad(self.actions, more), pad(self.values, more, value=1)
        self.actions[:, first : self.length], self.values[:, first : self.length, :-1] = actions, values

    def tops(self, start: Tensor | None, new: int) -> Tensor:
        """What the last `new` positions read, Eq. 25: [batch, new, hidden].

        Args:
            start: as of [`add`].
        """
        if self.levels.built == self.length and new == 1:
            return self.levels.near[:, :1, :-1]
        read = self.levels.follow(self.values, self.actions, start, self.length)
        return read if read.shape[1] == new else read[:, -new:]

    def last(self, length: int | Tensor) -> tuple[Tensor, Tensor]:
        """The probability of the last position's push [batch, 1], and what it holds [batch, 1, hidden]."""
        place = slice(self.length - 1, self.length)
        return self.actions[:, place, 0], self.values[:, place, :-1]

    def joined(self, actions: Tensor, values: Tensor | None, length: int | Tensor) -> tuple[Tensor, Tensor]:
        """The actions and the values of the first `length` positions and of new ones, which keep their gradient.

        Without new values the second is only those of the first positions.
        """
        past = int(length)
        before = self.values[:, :past, :-1]
        if values is not None:
            before = torch.cat([before.to(values.dtype), values], 1)
        return torch.cat([self.actions[:, :past], actions], 1), before

    def take(self, rows: Tensor) -> None:
        """Keeps these rows of the batch, in this order; rows may repeat."""
        if self.begun:
            rows = rows.to(self.actions.device)
            self.actions, self.values = self.actions[rows], self.values[rows]
            self.levels.take(rows)

    def crop(self, removed: int) -> None:
        """Removes the last positions."""
        self.length -= removed
        self.levels.forget(self.length)
        if self.begun and self.length == 0:
            self.reset()

    def reset(self) -> None:
        """Removes all positions."""
        self.length, self.begun, self.several, self.levels = 0, False, False, Levels(self.levels.drop)


def following_levels(
    stored: Tensor, bottom: Tensor, actions: Tensor, values: Tensor, start: Tensor | None, place: Tensor, more: int = 0
) -> Tensor:
    """The levels after one more position, by operations that a graph can hold: [batch, depth + more, hidden + 1].

    Args:
        stored: the levels before it, [batch, depth, hidden + 1].
        bottom: what lies below them, [batch, 1, hidden + 1].
        actions: of the new position, [batch, 1, 2 + K].
        values: what it holds, [batch, 1, hidden + 1]; the last column is 1.
        start: the column of position 0 in every row, [batch]; None means 0.
        place: the column of the new position, [1].
        more: how many levels the result has more.
    """
    begin = place.new_zeros(1, 1) if start is None else start[:, None]
    nothing = pad(torch.zeros_like(actions[:, 0, 1:]), (0, 1), value=1)
    acts = torch.where(begin < place, actions[:, 0], nothing)
    own = values.to(acts.dtype)
    below = bottom.expand(-1, actions.shape[2] - 2 + more, -1)
    following = next_levels(torch.cat([stored, below], 1), own, acts)
    begins = (begin == place).view(-1, 1, 1)
    return torch.where(begins, own * pad(torch.ones_like(own[..., 1:]), (0, 1)), following)


class FixedStackState(StackState):
    """The same for a fixed number of positions: shapes never change, and a new token is written by operations that
    `torch.compile` supports.

    Attributes:
        stored: the levels, [batch, capacity, hidden + 1]; the last one is position 0, which lies below all others.

    Args:
        capacity: the most positions.
    """

    stored: Tensor

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def add(
        self, actions: Tensor, values: Tensor, start: Tensor | None, length: int | Tensor = 0, *, several: bool = False
    ) -> None:
        actions, values = actions.detach(), pad(values.detach(), (0, 1), value=1)
        new = actions.shape[1]
        if not self.begun:
            more = (0, 0, 0, self.capacity - new)
            self.several = several and not torch.compiler.is_compiling()
            self.begun, self.actions, self.values = True, pad(actions, more), pad(values, more, value=1)
            self.stored = self._levels_of_all(start, new)
            if not torch.compiler.is_compiling():
                for tensor in (self.actions, self.values, self.stored):
                    torch._dynamo.mark_static_address(tensor)
            return
        places = torch.arange(new, device=actions.device) + length
        self.actions.index_copy_(1, places, actions)
        self.values.index_copy_(1, places, values)
        if new > 1:
            self.stored.copy_(self._levels_of_all(start, int(length) + new))
            return
        self.stored.copy_(following_levels(self.stored, self.stored[:, -1:], actions, values, start, places))

    def tops(self, start: Tensor | None, new: int) -> Tensor:
        """What the last position reads, [batch, 1, hidden]."""
        return self.stored[:, :new, :-1]

    def last(self, length: int | Tensor) -> tuple[Tensor, Tensor]:
        place = torch.as_tensor(length, device=self.actions.device).view(1) - 1
        return self.actions.index_select(1, place)[..., 0], self.values.index_select(1, place)[..., :-1]

    def joined(self, actions: Tensor, values: Tensor | None, length: int | Tensor) -> tuple[Tensor, Tensor]:
        if actions.shape[1] > 1:
            return super().joined(actions, values, length)
        place = torch.as_tensor(length, device=actions.device).view(1)
        stored = self.values[..., :-1]
        if values is not None:
            stored = stored.to(values.dtype).index_copy(1, place, values)
        return self.actions.index_copy(1, place, actions), stored

    def take(self, rows: Tensor) -> None:
        super().take(rows)
        if self.begun:
            self.stored = self.stored[rows.to(self.stored.device)]

    def _levels_of_all(self, start: Tensor | None, length: int) -> Tensor:
        """The levels after the first `length` positions."""
        with torch.autocast(self.actions.device.type, enabled=False):
            if not torch.compiler.is_compiling():
                levels = Levels(0.0)
                levels.follow(self.values, self.actions, start, length)
                return levels.whole(self.actions, self.capacity)
            # Popping one level after the other shows them all, in one operation.
            pops = pad(torch.ones_like(self.actions[..., :1]), (1, self.actions.shape[2] - 2))
            alpha = stack_attention(torch.cat([self.actions[:, :length], pops[:, 1:]], 1), start=start, validate=False)
            height = self.values[:, :length].to(alpha.dtype)
            places = torch.arange(length, device=alpha.device)
            bottom = places == (places.new_zeros(1, 1) if start is None else start[:, None])
            height = torch.cat([height[..., :-1], (~bottom).to(alpha.dtype).expand(len(height), -1)[..., None]], -1)
            return alpha[:, length - 1 :, :length] @ height


class _WithStack:
    """The parts of a cache layer that concern the stack."""

    stack: StackState

    @classmethod
    def holding(cls, layer: CacheLayerMixin, drop: float) -> Any:
        """The same layer, with a place for a stack; `drop` is as of [`StackState`]."""
        made = cls.__new__(cls)
        made.__dict__.update(layer.__dict__)
        fixed = isinstance(layer, StaticLayer) and not layer.is_sliding  # a window is no limit
        made.stack = FixedStackState(layer.max_cache_len) if fixed else StackState(drop)
        return made

    def reset(self) -> None:
        super().reset()  # type: ignore[misc]  # of the cache layer
        self.stack.reset()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)  # type: ignore[misc]
        self.stack.take(beam_idx)


class _Growing(_WithStack):
    """Of a layer that grows."""

    def crop(self: Any, tokens_to_remove: int) -> None:
        before = self.get_seq_length()
        super().crop(tokens_to_remove)  # type: ignore[misc]
        self.stack.crop(before - self.get_seq_length())

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)  # type: ignore[misc]
        if self.stack.begun:
            self.stack.take(torch.arange(len(self.stack.values)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)  # type: ignore[misc]
        self.stack.take(indices)


class StackDynamicLayer(_Growing, DynamicLayer):
    """A growing cache layer with a stack."""


class StackSlidingLayer(_Growing, DynamicSlidingWindowLayer):
    """The keys and values of a window, and the stack of all positions."""


class StackStaticLayer(_WithStack, StaticLayer):
    """A cache layer of fixed size with a stack."""


class StackStaticSlidingLayer(_WithStack, StaticSlidingWindowLayer):
    """A window of fixed size, and the stack of all positions, which grows."""


_HOLDERS: dict[type[CacheLayerMixin], type[_WithStack]] = {
    DynamicLayer: StackDynamicLayer,
    DynamicSlidingWindowLayer: StackSlidingLayer,
    StaticLayer: StackStaticLayer,
    StaticSlidingWindowLayer: StackStaticSlidingLayer,
}


def holds_stack(layer: Any) -> bool:
    """Whether a cache layer has a form with a stack."""
    return type(layer) in _HOLDERS


def stack_layer(cache: Cache, index: int, new: int, drop: float = 0.0) -> Any:
    """The cache layer that holds the stack of layer `index`, after `new` positions were added to its keys.

    A new stack that grows leaves out levels that are not reached with a probability above `drop`.

    Raises:
        StackError: a kind of cache that cannot hold a stack, or a cache filled by a model without a stack.
    """
    if isinstance(cache, EncoderDecoderCache):
        cache = cache.self_attention_cache
    layer = cache.layers[index]
    if isinstance(layer, _WithStack):
        return layer
    holder = _HOLDERS.get(type(layer))
    if holder is None or cache.offloading:
        raise StackError(
            f"A stack is kept in a DynamicCache or a StaticCache that is not offloaded, got {type(cache).__name__} "
            f"with layers of type {type(layer).__name__}{' and offloading' if cache.offloading else ''}; leave "
            "cache_implementation out, or set it to 'static'."
        )
    if int(layer.get_seq_length()) != new:
        raise StackError(
            f"The cache holds keys of {int(layer.get_seq_length())} positions and no stack: {new} of them are new, the "
            "rest came from a model without a stack. Begin with an empty cache."
        )
    cache.layers[index] = holder.holding(layer, drop)
    return cache.layers[index]
