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
from .belief_state_generation import PIPELINES, BeliefStateGeneration
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
        self.forward_encoder = AutoModel.from_config(config.encoder_config)
        self.backward_encoder = AutoModel.from_config(config.backward_encoder_config) if config.use_backward else None
        self.embed_tokens = self.forward_encoder.get_input_embeddings()
        for encoder in (self.forward_encoder, self.backward_encoder):
            if encoder is not None:
                encoder.set_input_embeddings(None)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding of both encoders."""
        return self.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the token embedding of both encoders."""
        self.embed_tokens = value

    def suffix_states(self, sequences: Sequences) -> Tensor | None:
        """B(x_j:T) at every token j, [batch, length, hidden]; None without a backward encoder."""
        if self.backward_encoder is None:
            return None
        tokens, mask, positions = reversed_rows(sequences.tokens, sequences.sequence)
        read = self.backward_encoder(
            inputs_embeds=self.embed_tokens(tokens), attention_mask=mask, position_ids=positions, use_cache=False
        )
        return read.last_hidden_state.flip(1)

    def empty_suffix(self, device: torch.device) -> Tensor | None:
        """B of the empty suffix: of the end token alone, [1, 1, hidden] (Section 2.2)."""
        if self.backward_encoder is None:
            return None
        end = torch.tensor([[self.config.end_token]], device=device)
        return self.backward_encoder(inputs_embeds=self.embed_tokens(end), use_cache=False).last_hidden_state

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, new]
        attention_mask: Tensor | None = None,  # [batch, past + new]
        position_ids: Tensor | None = None,  # [batch, new]
        past_key_values: Cache | None = None,
        suffix_ids: Tensor | None = None,  # [batch, suffix length]
        suffix_attention_mask: Tensor | None = None,  # [batch, suffix length]
        **kwargs: Any,
    ) -> BeliefStateModelOutput:
        """States of prefixes, and of suffixes if there are any.

        Args:
            position_ids: from 0; without them, they count the tokens that `attention_mask` marks as real.
            suffix_ids: the end of the text; the end token is added if it is missing.

        Further arguments go to the forward encoder.
        """
        if position_ids is None and attention_mask is not None and attention_mask.dim() == 2:
            position_ids = (attention_mask.long().cumsum(1) - 1).clamp(min=0)[:, -input_ids.shape[1] :]
        read = self.forward_encoder(
            inputs_embeds=self.embed_tokens(input_ids),
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            **kwargs,
        )
        suffix = None
        if suffix_ids is not None:
            sequences, _ = sequences_of(suffix_ids, suffix_attention_mask, None, self.config.end_token)
            suffix = self.suffix_states(sequences)
        return BeliefStateModelOutput(
            last_hidden_state=read.last_hidden_state,
            suffix_hidden_state=suffix,
            past_key_values=read.past_key_values,
            hidden_states=read.hidden_states,
            attentions=read.attentions,
        )


@dataclass
class BeliefStateCausalLMOutput(ModelOutput):
    """The output of [`BeliefStateForCausalLM`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): Eq. 2.
        logits (`Tensor` of shape `[batch, length, vocab_size]`): of the next token after every prefix, given the
            suffix.
        prev_logits (`Tensor` of the same shape, when `suffix_ids` are given): of the token before the suffix.
        past_key_values, hidden_states, attentions: the forward encoder's.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    prev_logits: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class BeliefStateForCausalLM(BeliefStatePreTrainedModel, BeliefStateGeneration, GenerationMixin):
    """The Belief State Transformer: predicts the next token of a prefix and the one before a suffix (Eq. 1).

    `generate()` uses the empty suffix, or `suffix_ids`. With `labels` it trains on all pairs of a prefix and a suffix.
    """

    _auto_class = "AutoModelForCausalLM"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: BeliefStateConfig) -> None:
        super().__init__(config)
        config.custom_pipelines = PIPELINES
        self.model = BeliefStateModel(config)
        self.text_head = TextHead(
            self.model.forward_encoder.config.hidden_size,
            config.head_width,
            config.head_layers,
            self.model.embed_tokens.num_embeddings,
            suffix=config.use_backward,
            prev=config.predict_previous,
        )
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,  # [batch, new]
        attention_mask: Tensor | None = None,  # [batch, past + new]
        position_ids: Tensor | None = None,  # [batch, new]
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,  # [batch, new]
        suffix_ids: Tensor | None = None,  # [batch, suffix length]
        suffix_attention_mask: Tensor | None = None,  # [batch, suffix length]
        suffix_state: Tensor | None = None,  # [batch or 1, 1, hidden]
        logits_to_keep: int | Tensor = 0,
        num_items_in_batch: int | Tensor | None = None,
        **kwargs: Any,
    ) -> BeliefStateCausalLMOutput:
        """The logits of the next token, with a suffix also of the token before it, and the loss over all pairs.

        Args:
            labels: the input tokens, -100 at tokens that are not trained.
            suffix_ids: the end of the text, which the logits are conditioned on; without it, the empty suffix.
            suffix_state: B of the suffix if it is known already, from [`suffix_state`]; `generate()` gives it, so a
                suffix is read once.
            num_items_in_batch: the number of trained tokens of a batch whose gradients are accumulated.

        Raises:
            PairError: labels without any pair of a prefix and a suffix.
        """
        outputs = self.model(
            input_ids, attention_mask, position_ids, past_key_values, suffix_ids, suffix_attention_mask, **kwargs
        )
        states = outputs.last_hidden_state
        loss = None
        if labels is not None:
            loss = self._loss(states, input_ids, attention_mask, labels, num_items_in_batch)
        suffix = self.model.empty_suffix(states.device) if suffix_state is None else suffix_state
        if outputs.suffix_hidden_state is not None:
            first = torch.zeros(len(states), dtype=torch.long, device=states.device)
            if suffix_attention_mask is not None:
                first = suffix_attention_mask.long().argmax(1)
            suffix = outputs.suffix_hidden_state[torch.arange(len(states), device=states.device), first][:, None]
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits, before = self.text_head(states[:, kept], suffix, previous=suffix_ids is not None)
        return BeliefStateCausalLMOutput(
            loss=loss,
            logits=logits,
            prev_logits=before if suffix_ids is not None else None,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def _loss(
        self,
        states: Tensor,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        labels: Tensor,
        items: int | Tensor | None,
    ) -> Tensor:
        sequences, _ = sequences_of(input_ids, attention_mask, labels, self.config.end_token)
        if sequences.tokens.shape[1] > states.shape[1]:  # the added end token begins no prefix of a pair
            states = nn.functional.pad(states, (0, 0, 0, 1))
        begin = sequences.first_prefix
        states, sequences = states[:, begin:], sequences.after(begin)  # a prompt's suffixes are in no pair
        suffixes = self.model.suffix_states(sequences)
        total, tokens = belief_state_loss(
            states, suffixes, self.text_head, sequences, self.config.least_gap, self.config.block_size
        )
        return total / (tokens if items is None else items)


__all__ = [
    "BeliefStateCausalLMOutput",
    "BeliefStateForCausalLM",
    "BeliefStateModel",
    "BeliefStateModelOutput",
    "BeliefStatePreTrainedModel",
]
