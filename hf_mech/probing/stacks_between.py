"""Stacks between layers, in the way of StackTrans (Zhang et al., NeurIPS 2025, arXiv:2507.15343): a baseline.

Written from the idea that its abstract gives (stacks of hidden states between transformer layers, soft operations
learned end to end), not from its code, so details differ. Stack attention keeps the positions and mixes them;
here every head keeps a stack of vectors of its own in a few slots, which forget what lies deeper.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel


class StackBetween(nn.Module):
    """Adds to every position what its stacks hold behind it; at the first step, nothing.

    Each head maps the hidden state to a narrow vector v and to the probabilities of push, pop and no-op. Its stack
    becomes `push * (v on top) + pop * (the rest) + no-op * unchanged`. A softmax over the slots reads it, by the
    scalar product of a query and the slots and a learned preference that begins with the top.

    Args:
        hidden: width of the model.
        heads: stacks.
        width: of a slot.
        slots: how deep a stack is.
        initializer_range: standard deviation of the new weights.
    """

    def __init__(self, hidden: int, heads: int, width: int, slots: int, initializer_range: float) -> None:
        super().__init__()
        self.heads, self.slots = heads, slots
        self.actions = nn.Linear(hidden, 3 * heads)
        self.down = nn.Linear(hidden, heads * width)
        self.query = nn.Linear(hidden, heads * width)
        self.up = nn.Linear(heads * width, hidden)
        for layer in (self.actions, self.down, self.query):
            nn.init.normal_(layer.weight, std=initializer_range)
            nn.init.zeros_(layer.bias)
        for parameter in self.up.parameters():
            nn.init.zeros_(parameter)
        self.preference = nn.Parameter(4.0 * F.one_hot(torch.tensor(0), slots).float().repeat(heads, 1))

    def forward(self, hidden: Tensor) -> Tensor:
        """[batch, length, hidden] to the same shape."""
        split = (*hidden.shape[:2], self.heads, -1)
        actions = self.actions(hidden).view(split).softmax(-1)  # [batch, length, heads, 3]
        pushed, query = self.down(hidden).view(split), self.query(hidden).view(split)
        stacks = self._stacks(actions, pushed)
        scores = torch.einsum("blhw,blhsw->blhs", query, stacks) * query.shape[-1] ** -0.5 + self.preference
        read = torch.einsum("blhs,blhsw->blhw", scores.softmax(-1), stacks)
        return hidden + self.up(read.flatten(2))

    def _stacks(self, actions: Tensor, pushed: Tensor) -> Tensor:
        """The stacks behind every position, [batch, length, heads, slots, width], the top first."""
        push, pop, no_op = (action[..., None, None].unbind(1) for action in actions.unbind(-1))
        batch, _, heads, width = pushed.shape
        stack = pushed.new_zeros(batch, heads, self.slots, width)
        bottom = stack[:, :, :1]
        found = []
        for down, up, stay, top in zip(push, pop, no_op, pushed[:, :, :, None].unbind(1), strict=True):
            whole = torch.cat([top, stack, bottom], 2)
            stack = (down * whole[:, :, :-2]).addcmul(up, whole[:, :, 2:]).addcmul(stay, stack)
            found.append(stack)
        return torch.stack(found, 1)


def add_stacks_between(model: PreTrainedModel, *, heads: int = 4, width: int = 8, slots: int = 16) -> PreTrainedModel:
    """Puts a `StackBetween` between the layers of a decoder: behind each but the last. The logits stay as they are.

    It knows no cache: call the model, and its `generate`, with `use_cache=False`, and without padding on the left.

    Args:
        model: a decoder whose layers are `get_decoder().layers` and return hidden states.
        heads, width, slots: see `StackBetween`.
    """
    layers: Any = model.get_decoder().layers
    config = model.config
    for layer in layers[:-1]:
        layer.stack_between = StackBetween(config.hidden_size, heads, width, slots, config.initializer_range)
        layer.register_forward_hook(lambda module, arguments, output: module.stack_between(output))
    return model
