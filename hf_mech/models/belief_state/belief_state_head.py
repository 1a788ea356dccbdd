"""The text head: the next and the previous token from a prefix's and a suffix's state (Eq. 1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TextHead(nn.Module):
    """T_n and T_p: an MLP on the two states, tied but for its last layer (Section 2.1, Appendix D.1).

    The first layer acts on both states side by side. It is stored as a part for each state, whose results are added, so
    T prefixes and T suffixes cost 2T products instead of T^2 (`belief_state_objective`).

    Args:
        size: of a state.
        width: of the hidden layers.
        layers: all linear layers, 2 or more; the paper has 3.
        vocabulary: the number of tokens.
        suffix: False for the head without a backward encoder (Section 3.6).
        prev: False for the head without the previous token (Section 3.6).
    """

    def __init__(
        self, size: int, width: int, layers: int, vocabulary: int, *, suffix: bool = True, prev: bool = True
    ) -> None:
        super().__init__()
        self.prefix = nn.Linear(size, width)
        self.suffix = nn.Linear(size, width, bias=False) if suffix else None
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(layers - 2))
        self.next = nn.Linear(width, vocabulary)
        self.prev = nn.Linear(width, vocabulary) if prev else None

    def forward(self, prefix: Tensor, suffix: Tensor | None, *, previous: bool = True) -> tuple[Tensor, Tensor | None]:
        """Logits of the next token after a prefix and of the token before a suffix.

        Args:
            prefix: F's states, [..., size].
            suffix: B's states, [..., size], that can be broadcast with them; None without a backward encoder.
            previous: False if only the next token is asked for.

        Returns:
            Both [..., vocabulary]; the second is None without `prev` or `previous`.
        """
        first = self.prefix(prefix)
        if self.suffix is not None and suffix is not None:
            first = first + self.suffix(suffix)
        return self.rest(first, previous)

    def rest(self, first: Tensor, previous: bool = True) -> tuple[Tensor, Tensor | None]:
        """The layers after the first one, from its sums [..., width]."""
        states = self.tied(first)
        return self.next(states), self.prev(states) if self.prev is not None and previous else None

    def tied(self, first: Tensor) -> Tensor:
        """The layers between the first and the last, from the first one's sums [..., width]."""
        states = first.relu()
        for layer in self.hidden:
            states = layer(states).relu()
        return states

    def last(self) -> tuple[Tensor, Tensor] | None:
        """Weights [2 vocabulary, width] and biases of both last layers as one, for one product instead of two.

        None if there is one layer, or if one of them is more than `nn.Linear`, for example an adapter of peft.
        """
        if self.prev is None or not (_plain(self.next) and _plain(self.prev)):
            return None
        return torch.cat([self.next.weight, self.prev.weight]), torch.cat([self.next.bias, self.prev.bias])


def _plain(layer: nn.Module) -> bool:
    """A call of the layer is `functional.linear` and nothing else."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    return type(layer) is nn.Linear and "forward" not in vars(layer) and not any(hooks)
