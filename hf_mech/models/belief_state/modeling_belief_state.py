"""The Belief State Transformer: forward and backward encoders, and one head for the next and the previous token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .belief_state_errors import CheckpointError
from .belief_state_head import TextHead
from .belief_state_objective import belief_state_loss
from .belief_state_pairs import Sequences
from .belief_state_rows import sequences_of
from .checkpoints import SafeCheckpoints
from .configuration_belief_state import BeliefStateConfig


@dataclass
class BeliefStateModelOutput(ModelOutput):
    """The output of [`BeliefStateModel`].

    Args:
        last_hidden_state (`Tensor` of shape `[batch, length, hidden_size]`): F(x_1:i) after every token i, the belief
            states (Theorem 2).
        suffix_hidden_state (`Tensor` of shape `[batch, suffix length, hidden_size]`, when `suffix_ids` are given):
            B(x_j:T) at every token j of the suffix.
        past_key_values (`Cache`): the forward encoder's.
        hidden_states, attentions: the forward encoder's, as in transformers.
    """

    last_hidden_state: Tensor | None = None
    suffix_hidden_state: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class BeliefStatePreTrainedModel(SafeCheckpoints, PreTrainedModel):
    """The base of the belief state models: configuration, initialisation, loading."""

    config_class = BeliefStateConfig
    config: BeliefStateConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_attention_backend = True
    _checkpoint_error = CheckpointError

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, TextHead):
            # Sums of two states go through ReLU: variance is kept, and the first logits are small.
            for layer in (module.prefix, module.suffix, *module.hidden):
                if layer is not None:
                    init.normal_(layer.weight, std=layer.in_features**-0.5)
            for layer in (module.next, module.prev):
                if layer is not None:
                    init.normal_(layer.weight, std=0.1 * layer.in_features**-0.5)
            for layer in module.modules():
                if isinstance(layer, nn.Linear) and layer.bias is not None:
                    init.zeros_(layer.bias)


def reversed_rows(tokens: Tensor, sequence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Every row from its last column to its first, with its mask and its positions from the end.

    Args:
        tokens: [batch, length].
        sequence: -1 at padding, [batch, length].

    Returns:
        Tokens, the mask, and positions that count real tokens from 0, each [batch, length].
    """
    real = (sequence >= 0).flip(1).long()
    return tokens.flip(1), real, (real.cumsum(1) - 1).clamp(min=0)


class BeliefStateModel(BeliefStatePreTrainedModel):
    """F and B without a head: the states of prefixes and of suffixes (Eq. 1).

    The token embedding is shared. Each encoder counts positions from its own end of the text.
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: BeliefStateConfig) -> None:
        super().__init__(config)
        self.forward_encoder = AutoModel.from_config(config.encoder)
        self.backward_encoder = AutoModel.from_config(config.encoder) if config.use_backward else None
        if self.backward_encoder is not None:
            self.backward_encoder.set_input_embeddings(self.forward_encoder.get_input_embeddings())
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding of both encoders."""
        return self.forward_encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the token embedding of both encoders."""
        self.forward_encoder.set_input_embeddings(value)
        if self.backward_encoder is not None:
            self.backward_encoder.set_input_embeddings(value)

    def suffix_states(self, sequences: Sequences) -> Tensor | None:
        """B(x_j:T) at every token j, [batch, length, hidden]; None without a backward encoder."""
        if self.backward_encoder is None:
            return None
        tokens, mask, positions = reversed_rows(sequences.tokens, sequences.sequence)
        read = self.backward_encoder(input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=False)
        return read.last_hidden_state.flip(1)
