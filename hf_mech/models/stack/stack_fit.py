"""Which stock models can get stacks: decided by the interface of their layers, not by their names."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn
from transformers.cache_utils import DynamicCache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import PreTrainedModel

from .configuration_stack import StackError
from .stack_cache import holds_stack
from .stack_layer import CACHES

_INPUTS = ("input_ids", "attention_mask", "position_ids", "past_key_values", "inputs_embeds")


def find_layers(model: PreTrainedModel) -> tuple[Any, Any]:
    """The module that holds a decoder's layers, and the `ModuleList` of them.

    Raises:
        StackError: the model cannot get stacks; the text says why.
    """
    config = model.config
    if getattr(config, "is_encoder_decoder", False):
        raise _refusal(model, "it is an encoder-decoder")
    if config.get_text_config(decoder=True) is not config:
        raise _refusal(model, "it has several parts, of which a language model is one; give that one alone")
    count = getattr(config, "num_hidden_layers", None)
    found = [
        (holder, layers)
        for holder in model.modules()
        for layers in holder.children()
        if isinstance(layers, nn.ModuleList)
        and len(layers) == count
        and all(isinstance(layer, GradientCheckpointingLayer) for layer in layers)
    ]
    if len(found) != 1:
        raise _refusal(model, f"it has {len(found)} lists of num_hidden_layers={count} layers, expected one")
    holder, layers = found[0]
    taken = inspect.signature(type(holder).forward).parameters
    if lacking := [name for name in _INPUTS if name not in taken]:
        raise _refusal(model, f"{type(holder).__name__}, which holds its layers, does not take {', '.join(lacking)}")
    for kind in {type(layer) for layer in layers}:
        _check_layer(model, kind)
    causal = {module.is_causal for module in layers.modules() if hasattr(module, "is_causal")}
    if causal == {False}:
        raise _refusal(model, "its tokens see the future")
    _check_cache(model)
    return holder, layers


def _check_layer(model: PreTrainedModel, kind: type[nn.Module]) -> None:
    parameters = inspect.signature(kind.forward).parameters
    if not any(name in parameters for name in CACHES):
        raise _refusal(model, f"{kind.__name__} takes no cache of keys and values ({' or '.join(CACHES)})")
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        raise _refusal(model, f"{kind.__name__} takes no further keyword arguments, by which its stack gets its inputs")


def _check_cache(model: PreTrainedModel) -> None:
    kept = DynamicCache(config=model.config).layers
    if others := sorted({type(layer).__name__ for layer in kept if not holds_stack(layer)}):
        raise _refusal(model, f"the cache of its layers is a {', '.join(others)}, which has no place for a stack")


def _refusal(model: PreTrainedModel, reason: str) -> StackError:
    return StackError(
        f"{type(model).__name__} cannot get a stack: {reason}. A stack is for transformers' decoders whose layers are "
        "alike, see no future and keep keys and values, as those of Llama, Qwen, Mistral, Gemma, GPT-NeoX and OPT."
    )
