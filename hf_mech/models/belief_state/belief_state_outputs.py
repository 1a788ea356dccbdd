"""The outputs of the belief state models."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers.cache_utils import Cache
from transformers.utils import ModelOutput


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


@dataclass
class BeliefStateCausalLMOutput(ModelOutput):
    """The output of [`BeliefStateForCausalLM`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): Eq. 2.
        logits (`Tensor` of shape `[batch, length, vocab_size]`): of the next token after every prefix, given the
            suffix.
        prev_logits (`Tensor` of the same shape, with `suffix_ids` or `output_prev_logits=True`): of the token before
            the suffix.
        past_key_values, hidden_states, attentions: the forward encoder's.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    prev_logits: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
