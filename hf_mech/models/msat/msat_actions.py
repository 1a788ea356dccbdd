"""Action tokens: one for a whole action, one a component, or one a component with the state (Section 4.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import ACT2FN

from .configuration_msat import MSATDecisionTransformerConfig


def component_vectors(actions: Tensor, sizes: list[int], one_hot: str) -> Tensor:
    """One-hot vectors of components (step 2 of Appendix 7.1), [..., components, width], float32.

    Args:
        actions: the value of each component, [..., components].
        sizes: the number of values of each component.
        one_hot: `"disjoint"`: `sum(sizes)` wide, each component has columns of its own; `"overlapping"`: `max(sizes)`
            wide, all components begin at column 0.
    """
    if one_hot == "overlapping":
        return functional.one_hot(actions, max(sizes)).float()
    starts = torch.tensor([sum(sizes[:i]) for i in range(len(sizes))], device=actions.device)
    return functional.one_hot(actions + starts, sum(sizes)).float()


class ActionTokenizer(nn.Module):
    """Turns actions into tokens, before timesteps are added.

    `action_tokenization` says from what: `"single"`, one token from the components' one-hot vectors side by side
    (Section 5.1.1); `"multi"`, one token from each component's vector (Section 5.2.2); `"multi_state"`, one token from
    the state's embedding and each component's vector (Appendix 7.1).
    """

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.kind, self.one_hot = config.action_tokenization, config.one_hot
        self.sizes = list(config.action_sizes)
        width = max(self.sizes) if self.one_hot == "overlapping" else sum(self.sizes)
        if self.kind == "single":
            width = sum(self.sizes)
        elif self.kind == "multi_state":
            width += config.n_embd
        count = config.action_tokens if config.action_mlp == "per_component" else 1
        self.mlps = nn.ModuleList(_mlp(width, config) for _ in range(count))

    def forward(self, actions: Tensor, states: Tensor, first: int = 0) -> Tensor:
        """The tokens of actions, or of some of their components.

        Args:
            actions: [..., components], or [..., some] of the components from `first` on, which `"single"` cannot take.
            states: the embeddings of the steps' states, without timesteps, [..., hidden].
            first: the number of the first component that is given.

        Returns:
            [..., tokens, hidden].
        """
        vectors = self.vectors(actions, states, first)
        if len(self.mlps) == 1:
            return self.mlps[0](vectors)
        mlps = self.mlps[first : first + vectors.shape[-2]]
        return torch.stack([mlp(part) for mlp, part in zip(mlps, vectors.unbind(-2), strict=True)], -2)

    def vectors(self, actions: Tensor, states: Tensor, first: int = 0) -> Tensor:
        """What the MLP reads, [..., tokens, width]; arguments as in `forward`."""
        if self.kind == "single":
            disjoint = component_vectors(actions, self.sizes, "disjoint")
            return disjoint.sum(-2, keepdim=True).to(states.dtype)
        missing = len(self.sizes) - first - actions.shape[-1]
        whole = functional.pad(actions, (first, missing))
        vectors = component_vectors(whole, self.sizes, self.one_hot)[..., first : first + actions.shape[-1], :]
        vectors = vectors.to(states.dtype)
        if self.kind == "multi":
            return vectors
        repeated = states.unsqueeze(-2).expand(*vectors.shape[:-1], -1)
        return torch.cat([repeated, vectors], -1)  # the state first: "states are pre-pended", Section 5.3


def _mlp(width: int, config: MSATDecisionTransformerConfig) -> nn.Sequential:
    layers: list[nn.Module] = []
    for index in range(config.action_layers):
        layers += [nn.Linear(config.n_embd if index else width, config.n_embd), ACT2FN[config.action_activation]]
    return nn.Sequential(*layers)
