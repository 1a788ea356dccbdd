"""The third sub-layer: actions (Eq. 24), stack attention (Eq. 19-23), read-out (Eq. 25) and residual (Eq. 26).

With `stack_values="recurrent"` the stack holds values of its own, which take the place of the read-out.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.cache_utils import Cache

from .configuration_stack import StackError
from .stack_attention import read_stack, stack_attention
from .stack_cache import FixedStackState, StackState, is_trained, stack_layer
from .stack_levels import BLOCK, LONG, Levels
from .stack_operations import stack_attention_from_operations
from .stack_values import RecurrentValues, links


@dataclass
class StackContext:
    """The inputs that the stacks of all layers share in one forward pass.

    Args:
        start: the column of position 0 in every row, [batch]; None if every row begins with it. Of rows with several
            sequences, that of the first one.
        starts: the column of position 0 of every position's own sequence, [batch, new], for rows with several
            sequences; otherwise None.
        real: True at new positions that are not padding, [batch, new]; None if all are real.
        operations: given operations (Section 3.4) instead of learned actions, [batch, new]: 0 push, k pop k times,
            K + 1 no-op.
        record: receives (stack attention, actions) of every layer, if it is a list.
    """

    start: Tensor | None = None
    starts: Tensor | None = None
    real: Tensor | None = None
    operations: Tensor | None = None
    record: list[tuple[Tensor, Tensor]] | None = None

    def to(self, *args: Any, **kwargs: Any) -> StackContext:
        """The same on another device, for models spread over several devices; the record is shared."""
        start, starts, real, operations = (
            None if tensor is None else tensor.to(*args, **kwargs)
            for tensor in (self.start, self.starts, self.real, self.operations)
        )
        return StackContext(start, starts, real, operations, self.record)


class Actions(nn.Linear):
    """W_A and b_A of Eq. 24; `even` means that they are zero at first."""

    even: bool = False


class StackSubLayer(nn.Module):
    """Eq. 26: adds to every position the hidden state on top of its stack, or its recurrent value.

    Args:
        config: has `hidden_size` and the stack's options.
        layer_idx: the index of its layer in the cache.
    """

    def __init__(self, config: Any, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.multi_pop = config.multi_pop
        self.actions_from = config.stack_actions_from
        self.drop = 0.0
        if config.stack_tolerance:  # twice this is lost at the end of every block
            self.drop = config.stack_tolerance * BLOCK / (2 * config.max_position_embeddings)
        self.action = Actions(config.hidden_size, 2 + config.multi_pop)  # W_A and b_A
        self.action.even = config.stack_actions_start == "even"
        self.gate = nn.Parameter(torch.zeros(1)) if config.stack_gate else None
        self.values = None
        if config.stack_values == "recurrent":
            spread = getattr(config, "initializer_range", 0.02)
            self.values = RecurrentValues(config.hidden_size, spread, noise=config.stack_values_noise)

    def forward(
        self,
        hidden: Tensor,
        layer_input: Tensor,
        cache: Cache | None = None,
        context: StackContext | None = None,
    ) -> Tensor:
        """[batch, new, hidden] to the same shape. With a cache, call it after the layer's keys have been added.

        Args:
            hidden: what the layer's other sub-layers return.
            layer_input: what they took, [batch, new, hidden].
            cache: of the model, or None.
            context: of the forward pass.
        """
        context = context or StackContext()
        actions = self.actions(layer_input if self.actions_from == "layer_input" else hidden, context)
        state, past = None, 0
        if cache is not None:
            layer = stack_layer(cache, self.layer_idx, hidden.shape[1], self.drop)
            state, past = layer.stack, layer.get_seq_length() - hidden.shape[1]
        if state is not None and state.begun:
            alpha, read = self._extend(state, past, hidden, actions, context)
        elif self._is_long(hidden, context):
            alpha, read = actions[..., :0], self._read_long(state, hidden, actions, context.start)
        else:
            alpha = self._attention(actions, context)
            places = torch.arange(hidden.shape[1], device=hidden.device)
            before = nn.functional.pad(alpha, (0, 0, 1, 0))[:, : hidden.shape[1]]
            values = self._held(hidden, actions, context, before, hidden[:, :0], places)
            read = read_stack(alpha, values) if self.values is None else values
            if state is not None:
                state.add(actions, values, context.start, several=context.starts is not None)
        if context.record is not None:
            context.record.append((alpha, actions))
        return hidden + (read if self.gate is None else self.gate * read)

    def _is_long(self, hidden: Tensor, context: StackContext) -> bool:
        """Whether the first positions are better read from the stack's levels than from alpha as a whole."""
        return (
            not torch.compiler.is_compiling()
            and hidden.shape[1] >= LONG
            and self.values is None
            and context.starts is None
            and context.record is None
            and context.operations is None
        )

    def _read_long(self, state: StackState | None, hidden: Tensor, actions: Tensor, start: Tensor | None) -> Tensor:
        """What the first positions read, [batch, N, hidden], without alpha; adds them to the state, if there is one."""
        levels, taken = Levels(self.drop), actions.clone()
        with_ones = nn.functional.pad(hidden, (0, 1), value=1)
        read = levels.follow(with_ones, taken, start, hidden.shape[1]).to(hidden.dtype)
        if state is not None:
            state.add(taken, hidden, start)
            if not is_trained(actions, hidden):
                state.levels = levels
        return read

    def _extend(
        self, state: StackState, past: int | Tensor, hidden: Tensor, actions: Tensor, context: StackContext
    ) -> tuple[Tensor, Tensor]:
        """alpha of new positions after `past` others [batch, new, n], and what they read [batch, new, hidden].

        alpha is empty if nothing asks for it.
        """
        state.check_one_sequence()
        start, new, fixed = context.start, hidden.shape[1], isinstance(state, FixedStackState)
        recurs = self.values is not None
        if context.record is None and not is_trained(actions, hidden):
            if new == 1 and (fixed or not torch.compiler.is_compiling()):
                values = self._next_value(state, past, hidden, actions, context) if recurs else hidden
                state.add(actions, values, start, past)
                read = values if recurs else state.tops(start, 1).to(hidden.dtype)
                return actions[..., :0], read
            if not (recurs or fixed or torch.compiler.is_compiling()):
                state.add(actions, hidden, start, past)
                return actions[..., :0], state.tops(start, new).to(hidden.dtype)
        joined, values = state.joined(actions, None if recurs else hidden, past)
        alpha = stack_attention(joined, start=start, validate=False)
        places = torch.arange(new, device=hidden.device) + past
        alpha, before = alpha.index_select(1, places), alpha.index_select(1, places - 1)
        held = self._held(hidden, actions, context, before, values, places)
        state.add(actions, held, start, past)
        return alpha, held if recurs else read_stack(alpha, values)

    def _next_value(
        self, state: StackState, past: int | Tensor, hidden: Tensor, actions: Tensor, context: StackContext
    ) -> Tensor:
        """The recurrent value of one position after `past` others, [batch, 1, hidden]."""
        assert self.values is not None
        begin = 0 if context.start is None else context.start[:, None]
        push, value = state.last(past)
        top = state.tops(context.start, 1)
        place = torch.arange(1, device=hidden.device) + past
        runs = torch.where(begin < place - 1, 1 - push, 0)
        popped = torch.where(begin < place, actions[..., 1], 0)
        both = nn.functional.pad(popped[..., None], (1, 0))  # nothing of the previous value, and of the top its share
        last = torch.cat([value.to(top.dtype), top], 1)
        return self.values(hidden, runs, both, last, torch.ones_like(place), context.real)

    def _held(
        self, hidden: Tensor, actions: Tensor, context: StackContext, before: Tensor, past: Tensor, places: Tensor
    ) -> Tensor:
        """What new positions hold on the stack [batch, new, hidden]: their hidden states, or recurrent values.

        Args:
            hidden: the sub-layer's input at the new positions.
            actions: of the new positions.
            context: of the forward pass.
            before: alpha of the position before each of them, [batch, new, N].
            past: what the positions before hold, [batch, past, hidden]; later ones may follow.
            places: the columns of the new positions, [new].
        """
        if self.values is None:
            return hidden
        start = context.start if context.starts is None else context.starts
        runs, popped = links(before, actions[..., 1], places, start)
        return self.values(hidden, runs, popped, past, places, context.real)

    def actions(self, hidden: Tensor, context: StackContext) -> Tensor:
        """Eq. 24, or the given operations one-hot, [batch, new, 2 + K]; padding does nothing to the stack.

        At least float32: the recursion multiplies them many times.
        """
        if context.operations is None:
            logits = self.action(hidden)
            actions = logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        else:
            exact = torch.promote_types(hidden.dtype, torch.float32)
            actions = nn.functional.one_hot(context.operations, 2 + self.multi_pop).to(exact)
        if context.real is None:
            return actions
        nothing = torch.zeros_like(actions[:1, :1])
        nothing[..., -1] = 1
        return torch.where(context.real[..., None], actions, nothing)

    def _attention(self, actions: Tensor, context: StackContext) -> Tensor:
        """alpha of the first positions [batch, N, N]; for given operations, all positions at once (Section 3.4)."""
        start = context.start if context.starts is None else context.starts
        if context.operations is None:
            return stack_attention(actions, start=start, validate=False)
        return stack_attention_from_operations(
            actions.argmax(-1), multi_pop=self.multi_pop, start=start, dtype=actions.dtype
        )


def stack_of_layer(config: Any, layer_idx: int) -> StackSubLayer | None:
    """The stack of a layer; None if the configuration gives it none."""
    if not config.use_stack or (config.stack_layers is not None and layer_idx not in config.stack_layers):
        return None
    return StackSubLayer(config, layer_idx)


#: The names under which a stock layer takes the cache.
CACHES = ("past_key_values", "layer_past")


class StackedLayer:
    """A stock layer, and after its sub-layers the stack's (Eq. 26). Stands before the stock class in the bases."""

    stack: StackSubLayer | None
    _cache: tuple[str, int]  # its name, and its place behind the hidden states

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        stock: Any = cls.__bases__[-1]
        if issubclass(stock, StackedLayer):  # FSDP2 makes subclasses of layers
            return
        names = list(inspect.signature(stock.forward).parameters)[2:]
        cls._cache = next((name, names.index(name)) for name in CACHES if name in names)

    def forward(
        self, hidden_states: Tensor, *args: Any, stack_context: StackContext | None = None, **kwargs: Any
    ) -> Tensor:
        """[batch, new, hidden] to the same shape.

        Raises:
            StackError: the stock layer returns something else, or was not handed the context.
        """
        outputs: Any = super().forward(hidden_states, *args, **kwargs)  # type: ignore[misc]
        if self.stack is None:
            return outputs
        if not isinstance(outputs, Tensor) or outputs.dim() != 3 or outputs.shape != hidden_states.shape:
            raise StackError(
                f"{type(self).__name__} takes or returns something else than hidden states [batch, length, hidden]; no "
                "stack can be added to them."
            )
        if stack_context is None:
            raise StackError(
                f"{type(self).__name__} was called without stack_context: the model around it does not hand further "
                "keyword arguments on, so that its stacks would not know of padding. It cannot get a stack."
            )
        name, place = self._cache
        cache: Cache | None = kwargs[name] if name in kwargs else args[place] if place < len(args) else None
        return self.stack(outputs, hidden_states, cache, stack_context)


def init_stack(module: nn.Module) -> None:
    """Sets the gate to zero, the recurrent values' weights and, to start even, W_A and b_A to zero.

    Otherwise W_A and b_A are as in every other Linear of the model.
    """
    if isinstance(module, StackSubLayer) and module.gate is not None:
        init.zeros_(module.gate)
    if isinstance(module, Actions) and module.even:
        init.zeros_(module.weight)
        init.zeros_(module.bias)
    if isinstance(module, RecurrentValues):
        module.init_weights()
