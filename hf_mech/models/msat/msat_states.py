"""State encoders: frames by the published base's CNN, vectors by an MLP."""

from __future__ import annotations

from torch import Tensor, nn

from .configuration_msat import CONVOLUTIONS, MSATDecisionTransformerConfig, convolved


class FrameEncoder(nn.Module):
    """The published base's CNN: 32 x 8/4, 64 x 4/2, 64 x 3/1 with ReLU, then a linear layer with Tanh."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        channels, height, width = config.state_shape
        layers: list[nn.Module] = []
        for filters, kernel, stride in CONVOLUTIONS:
            layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU()]
            channels = filters
        self.convolutions = nn.Sequential(*layers)
        self.project = nn.Linear(channels * convolved(height) * convolved(width), config.n_embd)
        self.activation = nn.Tanh()

    def forward(self, states: Tensor) -> Tensor:
        """[rows, channels, height, width], scaled -> [rows, hidden]."""
        return self.activation(self.project(self.convolutions(states).flatten(1)))


class VectorEncoder(nn.Module):
    """An MLP with ReLU between its layers and Tanh at the end."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        (features,) = config.state_shape
        layers: list[nn.Module] = []
        for index in range(config.state_layers):
            layers += [nn.Linear(config.n_embd if index else features, config.n_embd), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1], nn.Tanh())

    def forward(self, states: Tensor) -> Tensor:
        """[rows, features], scaled -> [rows, hidden]."""
        return self.layers(states)


class StateEncoder(nn.Module):
    """The embedding of states in the environment's own units (step 1 of Appendix 7.1)."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.scale = config.scale_of_states
        self.state_dims = len(config.state_shape)
        self.network: nn.Module = (FrameEncoder if config.reads_frames else VectorEncoder)(config)

    def forward(self, states: Tensor) -> Tensor:
        """[..., *state_shape], of any numeric type -> [..., hidden]."""
        dtype = next(self.network.parameters()).dtype
        rows = states.flatten(0, -self.state_dims - 1)
        return self.network(rows.to(dtype) * self.scale).unflatten(0, states.shape[: -self.state_dims])
