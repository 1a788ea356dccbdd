"""The encoders: any decoder-only model of transformers that reads given embeddings, masks and positions."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn
from transformers import AutoModel
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

from .belief_state_errors import EncoderError

#: The arguments that `BeliefStateModel` gives to an encoder.
NEEDED = ("attention_mask", "inputs_embeds", "past_key_values", "position_ids", "use_cache")
#: The layers whose state at a token depends only on the tokens that its mask shows.
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}


def made_encoder(config: PreTrainedConfig, name: str) -> PreTrainedModel:
    """A new encoder without weights of its own for the token embedding's work, which the encoders share.

    Args:
        name: the argument of [`BeliefStateConfig`] that holds the configuration.

    Raises:
        EncoderError: the model cannot be an encoder.
    """
    check_kind(config, name)
    encoder = AutoModel.from_config(config)
    check_class(encoder, name)
    return encoder


def check_kind(config: PreTrainedConfig, name: str) -> None:
    """Refuses configurations of models that are no decoder of one text."""
    kind = f"{name} is a {type(config).__name__}"
    cure = "Use a decoder-only model, such as GPT2Config, LlamaConfig or Qwen3Config."
    if getattr(config, "is_encoder_decoder", False):
        raise EncoderError(f"{kind}, of an encoder-decoder model; a belief state's encoder has one stack. {cure}")
    both_ways = type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False)
    if both_ways or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or not getattr(config, "is_causal", True):
        raise EncoderError(
            f"{kind}, of a model that is not causal: its states would see the tokens they predict. {cure}"
        )
    layers = getattr(config, "layer_types", None)
    if layers is not None and len(layers) != config.num_hidden_layers:
        raise EncoderError(
            f"{kind} of {config.num_hidden_layers} layers with {len(layers)} layer_types; give a type for each layer, "
            "or a new configuration of that depth."
        )
    others = set(layers or ()) - ATTENTION
    if others:
        raise EncoderError(
            f"{kind} with the layers {sorted(others)}, whose states pass over padding and from one packed sequence to "
            f"the next. {cure}"
        )


def check_class(encoder: PreTrainedModel, name: str) -> None:
    """Refuses models whose forward pass lacks what two encoders with one token embedding need."""
    takes = inspect.signature(encoder.forward).parameters
    missing = [argument for argument in NEEDED if argument not in takes]
    if missing:
        raise EncoderError(
            f"{name} makes a {type(encoder).__name__}, whose forward does not take {', '.join(missing)}; an encoder "
            "needs them for the shared token embedding, for padding and for positions from each end. Use another model."
        )
    if encoder._is_stateful:
        raise EncoderError(
            f"{name} makes a {type(encoder).__name__}, whose layers carry a state along the row, through padding and "
            "from one packed sequence to the next. Use a model with attention alone."
        )
    table = encoder.get_input_embeddings()
    if not isinstance(table, nn.Embedding) or table.embedding_dim != encoder.config.hidden_size:
        raise EncoderError(
            f"{name} makes a {type(encoder).__name__}, whose token embedding is {table}; it must be an nn.Embedding of "
            f"the hidden size {encoder.config.hidden_size}."
        )


def learned_positions(encoder: nn.Module, config: Any) -> int | None:
    """The number of positions that an encoder without its token embedding has learned; None without a limit."""
    count = getattr(config, "max_position_embeddings", None)
    tables = [part for part in encoder.modules() if isinstance(part, nn.Embedding)]
    return count if count is not None and any(part.num_embeddings >= count for part in tables) else None
