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
from transformers.cache_utils import Cache
from transformers.masking_utils import create_masks_for_generate
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModel

from .configuration_stack import StackError
from .configuration_stack_decoder import HEADS, PREFIX, StackDecoderConfig, stacked_config
from .stack_fit import CACHES, find_layers
from .stack_inputs import stack_inputs
from .stack_layer import StackContext, StackSubLayer
from .stack_outputs import counts_items, ignores_padding, returns_stacks
from .stack_packing import same_sequence
from .stack_pretrained import StackPreTrained, checkpointing_waits

class StackedLayer:
    """A stock decoder layer, and after its sub-layers the stack's (Eq. 26). Stands before the stock class in the bases."""

    stack: StackSubLayer | None
    _stock: type[nn.Module]
    _cache: tuple[str, int]

    def forward(self, hidden_states: Tensor, *args: Any, stack_context: StackContext | None = None, **kwargs: Any) -> Any:
        """[batch, new, hidden] to the same shape.

        Raises:
            StackError: the stock layer returns something else, or the model has not handed it its `stack_context`.
        """
        outputs = super().forward(hidden_states, *args, **kwargs)  # type: ignore[misc]
        if self.stack is None:
            return outputs
        if not isinstance(outputs, Tensor) or outputs.dim() != 3 or outputs.shape != hidden_states.shape:
            raise StackError(
                f"{self._stock.__name__} takes or returns something else than hidden states [batch, length, hidden], "
                "so that no stack can be added to them."
            )
        if stack_context is None:
            raise StackError(
                f"{self._stock.__name__} was called without stack_context: the model above it keeps further keyword "
                "arguments to itself, so that its stacks would not know of padding. Such a model cannot get a stack."
            )
        name, place = self._cache
        cache: Cache | None = kwargs[name] if name in kwargs else args[place] if place < len(args) else None
        return self.stack(outputs, hidden_states, cache, stack_context)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, _, *state = super().__reduce_ex__(protocol)
        return _unpickled, (stacked_layer, self._stock), *state


def _unpickled(make: Callable[[type], type], stock: type) -> Any:
    """An object without its state, of a class that is made on demand."""
    return object.__new__(make(stock))


@functools.cache
def stacked_layer(stock: type[nn.Module]) -> type[Any]:
    """The class of a layer with a place for a stack. It keeps its name, by which layers are found and kept together."""
    names = list(inspect.signature(stock.forward).parameters)[2:]  # without self and the hidden states
    cache = next((name, names.index(name)) for name in CACHES if name in names)
    own = {"__module__": __name__, "__doc__": stock.__doc__, "_stock": stock, "_cache": cache}
    return type(stock.__name__, (StackedLayer, stock), own)


# ----------------------------------------------------------------------------------------------------------- models


class StackedModel(StackPreTrained):
    """A stock decoder, with or without a head, whose layers have stacks. Stands before the stock class in the bases."""

    _holds_layers = False  # of the one module that does, True

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        bare = HEADS["AutoModel"][self._config_classes()[1].model_type]
        AutoModel.register(type(config), stacked(getattr(transformers, bare)), exist_ok=True)  # some heads make it so
        with checkpointing_waits(config):
            super().__init__(config, *args, **kwargs)
        place_stacks(self)
        self.post_init()

    @classmethod
    def _configure(cls, where: str, found: dict[str, Any], config: Any, kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """Reads also config.json, where the type of all stock decoders with stacks is the same."""
        if found.get("model_type") == StackDecoderConfig.model_type:
            found = {**found, "model_type": f"stack_{found.get('decoder_type')}"}
            if config is None and found["model_type"] == cls._config_classes()[0].model_type:
                config, kwargs = cls._read(found, kwargs)
        return super()._configure(where, found, config, kwargs)


class _InnerModel(StackedModel):
    """The module of a head that holds the layers."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, _, *state = super().__reduce_ex__(protocol)
        return _unpickled, (_inner, type(self).__bases__[-1]), *state


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
    if head == "AutoModelForQuestionAnswering":
        forward = ignores_padding(forward)
    of_rows = head in ("AutoModelForSequenceClassification", "AutoModelForQuestionAnswering")
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
    Linear(in_features=32, out_features=3, bias=True)

    ```

    Raises:
        StackError: a class that is not transformers' own, or that no Auto class for decoders gives.
    """
    kind = getattr(stock, "config_class", None)
    name = stock.__name__
    head = next((head for head, table in HEADS.items() if kind and table.get(kind.model_type) == name), None)
    if getattr(transformers, name, None) is not stock or head is None:
        raise StackError(
            f"{name} is none of the models that transformers has for {', '.join(HEADS)}; a stack is for their decoders."
        )
    config_class = stacked_config(kind)
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
    own = {"__module__": stock.__module__, "__qualname__": stock.__qualname__, **_methods(stock)}
    return type(stock.__name__, (_InnerModel, stock), own)


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
    config: Any = model.config
    holder, layers = find_layers(model)
    if holder is not model:
        holder.__class__ = _inner(type(holder))
    holder._holds_layers = True  # type: ignore[assignment]
    chosen = range(len(layers)) if config.stack_layers is None else config.stack_layers
    new = {index: StackSubLayer(config, index) for index in chosen if config.use_stack}
    for index, layer in enumerate(layers):
        layer.__class__ = stacked_layer(type(layer))
        layer.stack = new.get(index)
    return list(new.values())
