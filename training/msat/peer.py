"""transformers' `DecisionTransformerModel` with discrete actions: what M-SAT's baseline is compared with.

The two read the same tokens, return, state and action. transformers' embeds a state by one linear layer, normalises the
tokens, and has ReLU in its blocks; M-SAT's base has an MLP of two layers, and GELU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import DecisionTransformerConfig, DecisionTransformerModel

from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATOutput, component_loss, component_vectors
from hf_mech.models.msat.msat_acting import padded_logits


class DecisionTransformerPlayer(nn.Module):
    """The stock model with a cross-entropy for each component, and a player for `hf_mech.control.play`.

    Its action is a one-hot vector of each component, side by side; `action_preds`, without tanh, are the logits.

    Args:
        config: of an M-SAT of the same size: its observations, actions, context and return are this one's, too.
    """

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.config = config
        (features,) = config.state_shape
        self.model = DecisionTransformerModel(
            DecisionTransformerConfig(
                state_dim=features,
                act_dim=sum(config.action_sizes),
                hidden_size=config.n_embd,
                max_ep_len=config.max_timestep + 1,
                action_tanh=False,
                n_layer=config.n_layer,
                n_head=config.n_head,
                n_positions=3 * config.context_length,
                embd_pdrop=config.embd_pdrop,
                resid_pdrop=config.resid_pdrop,
                attn_pdrop=config.attn_pdrop,
                bos_token_id=None,
                eos_token_id=None,
            )
        )

    def forward(
        self,
        states: Tensor,
        actions: Tensor,
        returns_to_go: Tensor,
        timesteps: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
    ) -> MSATOutput:
        """As the forward of `MSATDecisionTransformer`, of a batch of its collator."""
        sizes = list(self.config.action_sizes)
        output = self.model(
            states=states.float(),
            actions=component_vectors(actions, sizes, "disjoint").sum(-2),
            returns_to_go=returns_to_go[..., None] * self.config.return_scale,
            timesteps=timesteps,
            attention_mask=attention_mask,
        )
        logits = padded_logits(output.action_preds.split(sizes, -1))
        return MSATOutput(loss=None if labels is None else component_loss(logits, labels), logits=logits)

    def start_context(self, batch_size: int = 1) -> list[deque[tuple[Tensor, Tensor, float, int]]]:
        """The last steps of each environment: state, action, return to go and timestep."""
        return [deque(maxlen=self.config.context_length) for _ in range(batch_size)]

    @torch.no_grad()
    def act(
        self,
        states: Tensor,
        context: list[deque[tuple[Tensor, Tensor, float, int]]],
        returns_to_go: Sequence[float],
        *,
        begins: Sequence[bool],
        rows: Sequence[int],
        do_sample: bool = False,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The actions of these rows, [rows, components]; reads each row's whole context again."""
        device = next(self.parameters()).device
        unknown = torch.zeros(len(self.config.action_sizes), dtype=torch.long)
        chosen = []
        for row, state, wanted, begin in zip(rows, states, returns_to_go, begins, strict=True):
            steps = context[row]
            if begin:
                steps.clear()
            steps.append((state, unknown, wanted, steps[-1][3] + 1 if steps else 0))
            seen, done, returns, times = zip(*steps, strict=True)
            logits = self(
                torch.stack(seen)[None].to(device),
                torch.stack(done)[None].to(device),
                torch.tensor([returns], device=device),
                torch.tensor([times], device=device),
                torch.ones(1, len(steps), dtype=torch.long, device=device),
            ).logits[0, -1]
            if do_sample:
                odds = (logits.float() / temperature).softmax(-1)
                action = torch.multinomial(odds, 1, generator=generator).squeeze(-1)
            else:
                action = logits.argmax(-1)
            steps[-1] = (state, action.cpu(), wanted, times[-1])
            chosen.append(action)
        return torch.stack(chosen)

    def num_parameters(self) -> int:
        """Of the stock model; its heads for states and returns, which nothing trains, count too."""
        return cast(int, self.model.num_parameters())

    def save_pretrained(self, folder: str | Path, **kwargs: Any) -> None:
        """Saves the stock model, as transformers does."""
        self.model.save_pretrained(folder, **kwargs)
