"""Stock decoders with a stack in their layers (Section 3.3), made on demand: there is no list of models.

A decoder is met at two places, by its interface:

- every layer takes hidden states and a cache and returns hidden states; the stack is added to what it returns;
- the module that holds the layers takes `input_ids`, `attention_mask`, `position_ids` and a cache; from them the inputs
  of the stacks are made, which it hands to its layers as the keyword argument `stack_context`.

The classes are subclasses of the stock ones: weights keep their names, and generation, caches, attention
implementations, adapters and parallel plans are the stock model's. [`stacked`] makes the class of a model, and so does
its name: `from ...modeling_stack_decoder import StackLlamaForCausalLM`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)
from transformers.masking_utils import create_masks_for_generate
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModel

from .configuration_stack import StackError
from .configuration_stack_decoder import HEADS, PREFIX, StackDecoderConfig, stacked_config
from .stack_fit import find_layers
from .stack_inputs import stack_inputs
from .stack_layer import StackedLayer, StackSubLayer, stack_of_layer
from .stack_outputs import counts_items, returns_stacks
from .stack_packing import same_sequence
from .stack_pretrained import StackPreTrained, checkpointing_waits


class StackedModel(StackPreTrained):
    """A stock decoder, with or without a head, whose layers have stacks. Stands before the stock class in the bases."""

    _holds_layers = False  # of the one module that does, True

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        bare = HEADS["AutoModel"][self._config_classes()[1].model_type]
        # Stock heads for classification make their inner model by AutoModel.
        AutoModel.register(type(config), stacked(getattr(transformers, bare)), exist_ok=True)
        with checkpointing_waits(config):
            super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]  # of the stock model
        place_stacks(self)
        self.post_init()

    @classmethod
    def _configure(cls, where: str, found: dict[str, Any], config: Any, kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """Reads also config.json, where the type of all stock decoders with stacks is the same."""
        if found.get("model_type") == StackDecoderConfig.model_type:
            found = {**found, "model_type": f"{StackDecoderConfig.model_type}_{found.get('decoder_type')}"}
            if config is None and found["model_type"] == cls._config_classes()[0].model_type:
                config, kwargs = cls._read(found, kwargs)
        return super()._configure(where, found, config, kwargs)


def with_stack_inputs(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a stock forward method give its layers the inputs of their stacks, if the layers are its own.

    Positions, if not given, count only the tokens that `attention_mask` marks as real. Several sequences in a row are
    told apart by [`stack_inputs`]. Without a stack everything is left as it is.
    """
    names = list(inspect.signature(forward).parameters)[1:]

    @functools.wraps(forward)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.update(zip(names, args, strict=False))
        if not self._holds_layers:
            return forward(self, **kwargs)
        if not self.config.use_stack:
            for name in ("stack_operations", "stack_record", "stack_of_rows"):
                kwargs.pop(name, None)
            return forward(self, **kwargs)
        given = kwargs.get("input_ids")
        given = kwargs.get("inputs_embeds") if given is None else given
        if given is None:
            raise StackError("Give input_ids or inputs_embeds, got neither.")
        if isinstance(kwargs.get("attention_mask"), dict):
            raise StackError("Stacks need the attention_mask [batch, past + new], got a mask for each type of layer.")
        dtype = self.get_input_embeddings().weight.dtype if given.dim() == 2 else given.dtype
        context, kwargs["attention_mask"], kwargs["position_ids"] = stack_inputs(
            self.config,
            given,
            kwargs.get("attention_mask"),
            kwargs.get("position_ids"),
            kwargs.get("past_key_values"),
            kwargs,
            causal=True,
            dtype=dtype,
            blocks=functools.partial(masks_of_blocks, self.config, dtype),
        )
        return forward(self, **kwargs, stack_context=context)

    return wrapper


def masks_of_blocks(config: Any, dtype: torch.dtype, starts: Tensor, real: Tensor | None) -> Any:
    """The self-attention masks of rows with several sequences, as the stock model makes them of its types of layers.

    Args:
        starts: the column of position 0 of every column's sequence, [batch, length].
        real: True at tokens that are not padding, [batch, length]; None if all are. Padding sees itself alone.
    """
    visible = same_sequence(starts)
    if real is not None:
        itself = torch.eye(starts.shape[1], dtype=torch.bool, device=starts.device)
        visible = visible & real[:, None] | itself & ~real[..., None]
    like = torch.empty(*starts.shape, 0, dtype=dtype, device=starts.device)
    return create_masks_for_generate(
        config, like, None, None, and_mask_function=lambda row, head, query, key: visible[row, query, key]
    )


def _methods(stock: type, head: str | None = None) -> dict[str, Any]:
    """The forward method of a stock class with the stack's arguments, and a loss that Trainer accumulates exactly.

    `head` is the Auto class that gives the stock class.
    """
    forward = stock.forward  # type: ignore[attr-defined]
    if head == "AutoModelForTokenClassification":
        forward = counts_items(forward)
    of_rows = head == "AutoModelForSequenceClassification"
    own: dict[str, Any] = {"forward": returns_stacks(of_rows=of_rows)(with_stack_inputs(forward))}
    return {**own, "accepts_loss_kwargs": False} if of_rows else own


@functools.cache
def stacked(stock: type[PreTrainedModel]) -> type[Any]:
    """The class of a stock decoder with stacks, from transformers' class.

    Its `from_pretrained` also takes stock checkpoints, and the options of the stack as keyword arguments; only the
    stacks are then new.

    Example:

    ```python
    >>> from transformers import LlamaForCausalLM
    >>> from hf_mech.models.stack import stacked

    >>> StackLlamaForCausalLM = stacked(LlamaForCausalLM)
    >>> config = StackLlamaForCausalLM.config_class(
    ...     num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4, vocab_size=50
    ... )
    >>> StackLlamaForCausalLM(config).model.layers[0].stack.action
    Actions(in_features=32, out_features=3, bias=True)

    ```

    Raises:
        StackError: a class that is not transformers' own, or that no Auto class for decoders gives.
    """
    kind: Any = getattr(stock, "config_class", None)
    name = stock.__name__
    head = next((head for head, table in HEADS.items() if kind and table.get(kind.model_type) == name), None)
    if getattr(transformers, name, None) is not stock or head is None:
        raise StackError(
            f"{name} is none of the models that transformers has for {', '.join(HEADS)}; a stack is for their decoders."
        )
    config_class = stacked_config(kind)
    if conversions := get_checkpoint_conversion_mapping(kind.model_type):  # of weights in files, as of experts
        register_checkpoint_conversion_mapping(config_class.model_type, conversions, overwrite=True)
    own = {
        "__module__": __name__,
        "__doc__": f"[`{name}`] with a stack in its layers.",
        "__annotations__": {"config": config_class},
        "config_class": config_class,
        "_auto_class": head,  # a saved checkpoint carries this code and loads without the package
        **_methods(stock, head),
    }
    return type(PREFIX + name, (StackedModel, stock), own)


@functools.cache
def _inner(stock: type[PreTrainedModel]) -> type[Any]:
    """The class of a head's inner model. It keeps its name, by which transformers knows what its outputs record."""
    own = {"__module__": stock.__module__, "__qualname__": stock.__qualname__, "__reduce_ex__": _by_stock_class(_inner)}
    return type(stock.__name__, (StackedModel, stock), {**own, **_methods(stock)})


@functools.cache
def _stacked_layer(stock: type[nn.Module]) -> type[Any]:
    """The class of a layer. It keeps its name, by which layers are found and kept on one device."""
    own = {"__module__": __name__, "__doc__": stock.__doc__, "__reduce_ex__": _by_stock_class(_stacked_layer)}
    return type(stock.__name__, (StackedLayer, stock), own)


def _by_stock_class(make: Callable[[type], type]) -> Callable[..., Any]:
    """`__reduce_ex__` of the classes that `make` makes: pickle does not find them by their names."""

    def reduce(self: Any, protocol: Any) -> Any:
        state = object.__reduce_ex__(self, protocol)[2:]
        return _without_state, (make, type(self).__bases__[-1]), *state

    return reduce


def _without_state(make: Callable[[type], type], stock: type) -> Any:
    return object.__new__(make(stock))


def __getattr__(name: str) -> Any:
    stock = getattr(transformers, name.removeprefix(PREFIX), None) if name.startswith(PREFIX) else None
    if not (isinstance(stock, type) and issubclass(stock, PreTrainedModel)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return stacked(stock)


# ------------------------------------------------------------------------------------------------------ their layers


def place_stacks(model: PreTrainedModel) -> list[StackSubLayer]:
    """Gives a stock decoder, or the one in it, its stacks; the configuration has their options.

    Returns:
        The new sub-layers, whose weights are not initialised.

    Raises:
        StackError: a model that cannot get a stack.
    """
    if any(isinstance(module, StackedLayer) for module in model.modules()):
        return []  # a head of any model, whose inner one is made by AutoModel
    holder, layers = find_layers(model)
    kinds: list[Any] = [type(module) for module in (holder, *layers)]
    if holder is not model:
        holder.__class__ = _inner(kinds[0])
    holder._holds_layers = True
    for index, (layer, kind) in enumerate(zip(layers, kinds[1:], strict=True)):
        layer.__class__ = _stacked_layer(kind)
        layer.stack = stack_of_layer(model.config, index)
    return [layer.stack for layer in layers if layer.stack is not None]
