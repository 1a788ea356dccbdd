"""The encoders: any decoder-only model of transformers that reads given embeddings, masks and positions."""

from __future__ import annotations

import inspect
import os
from typing import Any, Self

import torch
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING
from transformers.utils import logging

from .checkpoints import AdaptersTrainNewParts
from .configuration_belief_state import BeliefStateError

logger = logging.get_logger(__name__)

#: The arguments that `BeliefStateModel` gives to an encoder.
NEEDED = ("attention_mask", "inputs_embeds", "past_key_values", "position_ids", "use_cache")
#: The layers whose state at a token depends only on the tokens that its mask shows.
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}


def made_encoder(config: PreTrainedConfig, name: str) -> PreTrainedModel:
    """A new encoder without weights of its own for the token embedding's work, which the encoders share.

    Args:
        name: the argument of [`BeliefStateConfig`] that holds the configuration.

    Raises:
        BeliefStateError: the model cannot be an encoder.
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
        raise BeliefStateError(f"{kind}, of an encoder-decoder model; a belief state's encoder has one stack. {cure}")
    both_ways = type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False)
    if both_ways or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or not getattr(config, "is_causal", True):
        raise BeliefStateError(
            f"{kind}, of a model that is not causal: its states would see the tokens they predict. {cure}"
        )
    layers = getattr(config, "layer_types", None)
    if layers is not None and len(layers) != config.num_hidden_layers:
        raise BeliefStateError(
            f"{kind} of {config.num_hidden_layers} layers with {len(layers)} layer_types; give a type for each layer, "
            "or a new configuration of that depth."
        )
    others = set(layers or ()) - ATTENTION
    if others:
        raise BeliefStateError(
            f"{kind} with the layers {sorted(others)}, whose states pass over padding and from one packed sequence to "
            f"the next. {cure}"
        )


def check_class(encoder: PreTrainedModel, name: str) -> None:
    """Refuses models whose forward pass lacks what two encoders with one token embedding need."""
    takes = inspect.signature(encoder.forward).parameters
    missing = [argument for argument in NEEDED if argument not in takes]
    if missing:
        raise BeliefStateError(
            f"{name} makes a {type(encoder).__name__}, whose forward does not take {', '.join(missing)}; an encoder "
            "needs them for the shared token embedding, for padding and for positions from each end. Use another model."
        )
    if encoder._is_stateful:
        raise BeliefStateError(
            f"{name} makes a {type(encoder).__name__}, whose layers carry a state along the row, through padding and "
            "from one packed sequence to the next. Use a model with attention alone."
        )
    table = encoder.get_input_embeddings()
    if not isinstance(table, nn.Embedding) or table.embedding_dim != encoder.config.hidden_size:
        raise BeliefStateError(
            f"{name} makes a {type(encoder).__name__}, whose token embedding is {table}; it must be an nn.Embedding of "
            f"the hidden size {encoder.config.hidden_size}."
        )


def learned_positions(encoder: nn.Module, config: Any) -> int | None:
    """The number of positions that an encoder without its token embedding has learned; None without a limit."""
    count = getattr(config, "max_position_embeddings", None)
    tables = [part for part in encoder.modules() if isinstance(part, nn.Embedding)]
    return count if count is not None and any(part.num_embeddings >= count for part in tables) else None


#: The parts that a stock checkpoint of the forward encoder alone does not give.
NEW = ("text_head", "backward_encoder")


class LoadsEncoders(AdaptersTrainNewParts):
    """`from_encoder_pretrained`, for a model with two encoders. Adapters of peft train and save a new text head."""

    new_parts: tuple[str, ...] = ()  #: the parts that no checkpoint gave, by name

    def _new_parts(self) -> dict[str, list[nn.Module]]:
        head = getattr(self, "text_head", None)
        return {"text_head": [head]} if head is not None and "text_head" in self.new_parts else {}

    def _warn_of_targets(self, adapter: str, name: str, parts: list[nn.Module]) -> None:
        logger.warning(
            "The text head is newly initialised, and the adapter saves only its change to it. Pass "
            "modules_to_save=['text_head'] to train and save it whole."
        )

    def _add_new_parts(self, adapter: str, config: Any) -> None:
        if "backward_encoder" in self.new_parts and "backward_encoder" not in (config.modules_to_save or ()):
            logger.warning(
                "The backward encoder is newly initialised, and an adapter trains little of it. Give backward= to "
                "from_encoder_pretrained, a checkpoint, or pass modules_to_save=['text_head', 'backward_encoder']."
            )
        super()._add_new_parts(adapter, config)

    @classmethod
    def from_encoder_pretrained(
        cls,
        encoder: str | os.PathLike[str],
        backward: str | os.PathLike[str] | None = None,
        encoder_kwargs: dict[str, Any] | None = None,
        dtype: str | torch.dtype | None = None,
        **config: Any,
    ) -> Self:
        """A model whose forward encoder and token embedding are those of a stock checkpoint.

        The text head is new, so the model needs training. Adapters of peft train and save it whole, too.

        Args:
            encoder: a checkpoint of a decoder-only model, base or with a language modelling head: a folder, or a name
                on the Hub. The head is left out.
            backward: the backward encoder's checkpoint, which may be the same; its own token embedding is left out.
                Without it, the backward encoder is new, with the forward encoder's configuration.
            encoder_kwargs: arguments of `AutoModel.from_pretrained` for both, such as `revision`.
            dtype: that of the whole model, as for `AutoModel.from_pretrained`; defaults to the checkpoint's.
            config: arguments of [`BeliefStateConfig`]; `eos_token_id` if the checkpoint has none or several.

        Raises:
            BeliefStateError: a checkpoint of a model that cannot be an encoder, or that lacks weights; an invalid
                configuration.

        Example:

        ```python
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from hf_mech.models.belief_state import BeliefStateForCausalLM

        >>> sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1}
        >>> GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained("runs/stock-gpt2")
        >>> model = BeliefStateForCausalLM.from_encoder_pretrained("runs/stock-gpt2")
        >>> model.config.encoder_config.model_type
        'gpt2'

        ```
        """
        options = dict(encoder_kwargs or {}) if dtype is None else {**(encoder_kwargs or {}), "dtype": dtype}
        ahead = _loaded(encoder, "encoder", options)
        back = None if backward is None else _loaded(backward, "backward", options)
        made = cls.config_class(  # type: ignore[attr-defined]
            encoder_config=ahead.config, backward_encoder_config=None if back is None else back.config, **config
        )
        model = cls(made).to(ahead.dtype)  # type: ignore[call-arg, attr-defined]
        base = getattr(model, model.base_model_prefix, model)
        with torch.no_grad():
            base.embed_tokens.weight.copy_(ahead.get_input_embeddings().weight)
        for ours, stock in ((base.forward_encoder, ahead), (base.backward_encoder, back)):
            if ours is not None and stock is not None:
                stock.set_input_embeddings(None)
                ours.load_state_dict(stock.state_dict())
        model.new_parts = ("text_head",) if back is not None or not made.use_backward else NEW
        return model.eval()


def _loaded(checkpoint: str | os.PathLike[str], name: str, options: dict[str, Any]) -> PreTrainedModel:
    reading = {key: value for key, value in options.items() if key not in ("dtype", "device_map")}
    check_kind(AutoConfig.from_pretrained(checkpoint, **reading), name)
    encoder, info = AutoModel.from_pretrained(checkpoint, output_loading_info=True, **options)
    check_class(encoder, name)
    if info["missing_keys"]:
        raise BeliefStateError(
            f"{checkpoint} lacks the weights {sorted(info['missing_keys'])[:3]}, {len(info['missing_keys'])} in all; "
            "give a checkpoint of the whole model."
        )
    return encoder
