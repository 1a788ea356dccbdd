"""A sibling that both heads need."""

from torch import Tensor, nn


class ToyLayer(nn.Module):
    """One linear layer with a squashing."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., size] to [..., size]."""
        return self.linear(hidden_states).tanh()
