"""The cache of every layer's stack: the stack attention and what all positions so far hold there.

When a layer first runs, its layer of the cache is replaced by one that also holds a [`StackState`]. So the caches of
`generate()` or of a user (`DynamicCache`, `StaticCache`) work unchanged, and beam search, cropping and repeating act
on the stack together with the keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
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
from .stack_attention import read_stack, stack_attention, stack_attention_step
from .stack_sparse import SparseRows

Held = Callable[[Tensor, Tensor, Tensor], Tensor]
"""What new positions hold on the stack [batch, new, hidden], from alpha of the position before each of them
[batch, new, n], what the positions before hold [batch, n, hidden], and the columns of the new ones [new]."""


def is_trained(*tensors: Tensor) -> bool:
    """Whether gradients are to flow into one of them."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class StackState:
    """The stack of one layer while generating: `alpha` [batch, capacity, capacity], `values` [batch, capacity, hidden].

    Without a `capacity` it grows by doubling, so a new token copies little. With a `capacity` its shape is fixed, and a
    new token is written by operations that `torch.compile` supports. No gradient flows into the stored tensors.
    """

    alpha: Tensor
    values: Tensor

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.length = 0  # of a growing state; a static layer has its own count
        self.begun = False  # True once there are tensors
        self.several = False  # True if rows hold several sequences

    def begin(self, alpha: Tensor, values: Tensor, *, several: bool = False) -> None:
        """Stores the first positions: their stack attention [batch, n, n] and what they hold [batch, n, hidden].

        `several` says that rows hold several sequences; such a state cannot be extended.
        """
        self.length, self.begun = alpha.shape[1], True
        self.several = several and not torch.compiler.is_compiling()  # a compiled model does not look at positions
        self.alpha, self.values = alpha.detach(), values.detach()
        if self.capacity is not None:
            self._resize(self.capacity)
            if not torch.compiler.is_compiling():
                torch._dynamo.mark_static_address(self.alpha)
                torch._dynamo.mark_static_address(self.values)

    def extend(
        self,
        actions: Tensor,
        hidden: Tensor,
        start: Tensor,
        length: int | Tensor,
        held: Held | None = None,
        recorded: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Adds new positions after the first `length`.

        Args:
            actions: [batch, new, 2 + K].
            hidden: [batch, new, hidden].
            start: the column of position 0 in every row, [batch].
            length: the number of stored positions.
            held: what the new positions hold, if not `hidden`.
            recorded: whether alpha is asked for; a sparse state returns none otherwise.

        Returns:
            alpha of the new positions [batch, new, n], and what they read, [batch, new, hidden]: the top of the stack
            (Eq. 25), or with `held` what they hold themselves. n is length + new, or the capacity. The new positions
            keep their gradient.

        Raises:
            StackError: the stored rows hold several sequences.
        """
        self._check_one_sequence()
        what = held or (lambda *_: hidden)
        if actions.shape[1] > 1 or is_trained(actions, hidden):
            alpha, values, new = self._add_several(actions, what, start, int(length))
        elif self.capacity is None:
            alpha, values, new = self._add_one(actions, what, start, int(length))
        else:
            alpha, values, new = self._write_one(actions, what, start, length)
        return alpha, read_stack(alpha, values) if held is None else new

    def at_once(self, actions: Tensor, hidden: Tensor) -> int:
        """How many new positions one call of `extend` takes."""
        return actions.shape[1]

    def _check_one_sequence(self) -> None:
        if self.several:
            raise StackError(
                "The cache holds rows of several sequences, and new tokens would continue the last one alone. To "
                "generate, give every sequence a row of its own, with an attention_mask where they are padded."
            )

    def _write_one(
        self, actions: Tensor, held: Held, start: Tensor, length: int | Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        position = torch.as_tensor(length, device=actions.device).view(1)
        previous = self.alpha.index_select(1, position - 1)
        new = held(previous, self.values, position)
        row = stack_attention_step(actions[:, 0], self.alpha, start=start, state=previous[:, 0], position=position)
        row = row[:, None, :-1].index_copy(2, position, row[:, None, -1:])
        self.alpha.index_copy_(1, position, row)
        self.values.index_copy_(1, position, new)
        return row, self.values, new

    def _add_one(self, actions: Tensor, held: Held, start: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        self._make_room(length + 1)
        past, position = self.alpha[:, :length, :length], torch.tensor([length], device=actions.device)
        new = held(past[:, -1:], self.values[:, :length], position)
        self.alpha[:, length, : length + 1] = stack_attention_step(actions[:, 0], past, start=start)
        self.values[:, length] = new[:, 0]
        self.length = length + 1
        return self.alpha[:, length : length + 1, : length + 1], self.values[:, : length + 1], new

    def _add_several(self, actions: Tensor, held: Held, start: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        total = length + actions.shape[1]
        past = self.alpha[:, :length, :length]
        alpha = stack_attention(actions, start=start, past=past, validate=False)
        new = held(alpha[:, length - 1 : -1], self.values[:, :length], torch.arange(length, total, device=alpha.device))
        values = torch.cat([self.values[:, :length], new], 1)
        self._make_room(total)
        self.alpha[:, :total, :total], self.values[:, :total] = alpha.detach(), values.detach()
        self.length = total
        return alpha[:, length:], values, new

    def _make_room(self, length: int) -> None:
        if self.capacity is None and length > self.alpha.shape[1]:
            self._resize(2 * length)

    def _resize(self, capacity: int) -> None:
        alpha, values, n = self.alpha, self.values, self.length
        self.alpha = alpha.new_zeros(len(alpha), capacity, capacity)
        self.values = values.new_zeros(len(values), capacity, values.shape[2])
        self.alpha[:, :n, :n], self.values[:, :n] = alpha[:, :n, :n], values[:, :n]

    def take(self, rows: Tensor) -> None:
        """Keeps these rows of the batch, in this order; rows may repeat."""
        if self.begun:
            self.alpha, self.values = self.alpha[rows.to(self.alpha.device)], self.values[rows.to(self.values.device)]

    def crop(self, removed: int) -> None:
        """Removes the last positions."""
        self.length -= removed
        if self.begun:
            self.alpha, self.values = self.alpha[:, : self.length, : self.length], self.values[:, : self.length]
            self.begun = self.length > 0

    def reset(self) -> None:
        """Removes all positions."""
        self.length, self.begun = 0, False


class SparseStackState(StackState):
    """The same with rows of few entries, so that its memory grows with the length and not with its square.

    Args:
        drop: the most mass that a row of alpha may lose.
    """

    rows: SparseRows

    def __init__(self, drop: float) -> None:
        super().__init__()
        self.drop = drop

    def begin(self, alpha: Tensor, values: Tensor, *, several: bool = False) -> None:
        """As of a dense state; of rows with several sequences, alpha is not stored."""
        self.length, self.begun, self.several = alpha.shape[1], True, several
        self.values, self.rows = values.detach(), SparseRows(self.drop, alpha[:, 0])
        if not several:
            for i, row in enumerate(alpha.detach().unbind(1)):
                self.rows.append(row[:, : i + 1].clone(), row.new_zeros(len(row)))

    def at_once(self, actions: Tensor, hidden: Tensor) -> int:
        return actions.shape[1] if is_trained(actions, hidden) else 1

    def extend(
        self,
        actions: Tensor,
        hidden: Tensor,
        start: Tensor,
        length: int | Tensor,
        held: Held | None = None,
        recorded: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """As of a dense state, and also for the first position; several at once only with a gradient.

        What a row loses is missing in the alpha that is returned.
        """
        self._check_one_sequence()
        if not self.begun:
            self.begun, self.values, self.rows = True, hidden[:, :0].detach(), SparseRows(self.drop, actions[:, 0])
        length = int(length)
        total, past = length + actions.shape[1], self.values[:, :length]
        places = torch.arange(length, total, device=actions.device)
        if is_trained(actions, hidden):
            alpha = stack_attention(actions, start=start, past=self.rows.dense(), validate=False)
            before, alpha = alpha[:, length - 1 : -1], alpha[:, length:]
            for each in actions.detach().unbind(1):  # not alpha itself: the bound follows the rows that are kept
                self.rows.step(each, start)
        else:
            before = actions[..., :0] if held is None else self.rows.last()[:, None]
            self.rows.step(actions[:, 0], start)
            alpha = self.rows.last()[:, None] if recorded else actions[..., :0]
        new = hidden if held is None else held(before, past, places)
        if total > self.values.shape[1]:
            self.values = torch.nn.functional.pad(self.values, (0, 0, 0, 2 * total - self.values.shape[1]))
        self.values[:, length:total] = new.detach()
        self.length = total
        if held is not None:
            return alpha, new
        if is_trained(actions, hidden):
            return alpha, read_stack(alpha, torch.cat([past, new], 1))
        return alpha, self.rows.read(self.values)

    def take(self, rows: Tensor) -> None:
        """Keeps these rows of the batch, in this order; rows may repeat."""
        if self.begun:
            self.values = self.values[rows.to(self.values.device)]
            self.rows.take(rows)

    def crop(self, removed: int) -> None:
        """Removes the last positions."""
        self.length -= removed
        if self.begun:
            self.rows.crop(self.length)
            self.begun = self.length > 0


class _WithStack:
    """The parts of a cache layer that concern the stack."""

    stack: StackState

    @classmethod
    def holding(cls, layer: CacheLayerMixin, drop: float) -> Any:
        """The same layer, with a place for a stack; `drop` is the most mass that a row of alpha may lose."""
        made = cls.__new__(cls)
        made.__dict__.update(layer.__dict__)
        capacity = None if layer.is_sliding else getattr(layer, "max_cache_len", None)  # a window is no limit
        made.stack = SparseStackState(drop) if drop else StackState(capacity)
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

    With a `drop`, the most mass that a row of alpha may lose, a new stack keeps only the large entries.

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
    if drop and isinstance(layer, StaticLayer):
        raise StackError(
            "A static cache holds whole rows of stack attention, so that stack_tolerance has no use there; set it to "
            "0, or leave cache_implementation out."
        )
    cache.layers[index] = holder.holding(layer, drop)
    return cache.layers[index]
