"""The tokens of steps: return-to-go, state, action components, with the episode's timestep (Sections 3.2 and 4.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from .configuration_msat import MSATDecisionTransformerConfig
from .msat_actions import ActionTokenizer
from .msat_states import StateEncoder


class StepTokenizer(nn.Module):
    """Embeds steps as tokens; every part is also used alone, one decision at a time, by `act`."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.return_scale = float(config.return_scale)
        self.state_encoder = StateEncoder(config)
        self.embed_return = nn.Linear(1, config.n_embd)
        self.return_activation = ACT2FN[config.return_activation]
        self.action_tokenizer = ActionTokenizer(config)
        self.embed_timestep = (
            nn.Embedding(config.max_timestep + 1, config.n_embd) if config.positional_encoding else None
        )

    def forward(self, states: Tensor, actions: Tensor, returns_to_go: Tensor, timesteps: Tensor | None) -> Tensor:
        """The tokens of steps, in order.

        Args:
            states: [batch, steps, *state_shape].
            actions: [batch, steps, components].
            returns_to_go: in the environment's units, [batch, steps].
            timesteps: of the episode, [batch, steps]; not read without positional encoding.

        Returns:
            [batch, steps x tokens_per_step, hidden].
        """
        embedded = self.state_encoder(states)
        tokens = [self.of_return(returns_to_go), embedded.unsqueeze(-2), self.action_tokenizer(actions, embedded)]
        # Under autocast, the decoder adds its layers to the tokens in their type, with timesteps and without.
        return self.timed(torch.cat(tokens, -2).to(self.embed_return.weight.dtype), timesteps).flatten(1, 2)

    def of_return(self, returns_to_go: Tensor) -> Tensor:
        """The token of a return-to-go, without its timestep: [...] -> [..., 1, hidden].

        Outside autocast, where bfloat16 would round returns from 128 on to integers.
        """
        dtype = self.embed_return.weight.dtype
        scaled = (returns_to_go if dtype == torch.float64 else returns_to_go.float()) * self.return_scale
        with torch.autocast(returns_to_go.device.type, enabled=False):
            return self.return_activation(self.embed_return(scaled.to(dtype)[..., None, None]))

    def timed(self, tokens: Tensor, timesteps: Tensor | None) -> Tensor:
        """Adds each step's timestep to all its tokens: [..., tokens, hidden] and [...]."""
        if self.embed_timestep is None or timesteps is None:
            return tokens
        return tokens + self.embed_timestep(timesteps).unsqueeze(-2)
