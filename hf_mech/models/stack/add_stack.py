"""`add_stack`: a stack in the layers of a model that transformers has loaded."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
from transformers.modeling_utils import PreTrainedModel

from .configuration_stack import StackError
from .modeling_stack_decoder import place_stacks, stacked
from .stack_fit import find_layers
from .stack_pretrained import StackPreTrained


@torch.no_grad()
def add_stack(
    model: PreTrainedModel,
    *,
    layers: Literal["all"] | Sequence[int] = "all",
    gate: bool = True,
    multi_pop: int = 1,
    actions_from: Literal["hidden", "layer_input"] = "hidden",
    actions_start: Literal["random", "even"] = "random",
    values: Literal["hidden", "recurrent"] = "hidden",
    values_noise: float = 0.0,
    bottom: Literal["first_token", "bos_token"] = "first_token",
    tolerance: float = 0.0,
) -> Any:
    """Gives a stock decoder a stack in its layers (Section 3.3), in place.

    Args:
        model: a decoder of transformers, with or without a head, as `from_pretrained` returns it.
        layers: the layers that get a stack, from 0, or "all".
        gate: multiply what the stacks add by a learned number, initially zero: the logits stay as they are until the
            first step of training.
        multi_pop, actions_from, actions_start, values, values_noise, bottom, tolerance: the options `multi_pop`,
            `stack_actions_from`, `stack_actions_start`, `stack_values`, `stack_values_noise`, `stack_bottom` and
            `stack_tolerance` of [`StackOptions`].

    Returns:
        The same model, now of the class [`stacked`] of its class, with a configuration of its own. The new weights have
        the type and the device of their layer.

    Raises:
        StackError: a model that cannot get a stack, or that has one; options that do not exist or do not fit it.

    Example:

    ```python
    >>> from transformers import Qwen3Config, Qwen3ForCausalLM
    >>> from hf_mech.models.stack import add_stack

    >>> sizes = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64, "head_dim": 8}
    >>> config = Qwen3Config(**sizes, num_attention_heads=4, num_key_value_heads=2, vocab_size=50)
    >>> model = add_stack(Qwen3ForCausalLM(config), layers=[1])
    >>> type(model).__name__, model.model.layers[0].stack, model.model.layers[1].stack.gate.item()
    ('StackQwen3ForCausalLM', None, 0.0)

    ```
    """
    if not isinstance(model, PreTrainedModel):
        raise StackError(
            f"add_stack takes a model of transformers, got a {type(model).__name__}. Add the stack first, then "
            "adapters or torch.compile."
        )
    if isinstance(model, StackPreTrained):
        raise StackError(f"{type(model).__name__} has stacks already; set their options in its configuration.")
    stock: Any = type(model)
    model_class = stacked(stock)
    if getattr(model, "is_quantized", False):
        raise StackError(
            f"This {stock.__name__} is quantised, and its checkpoint could not tell the stacks, which are not. Load it "
            "unquantised, add the stack and save it; then load that with a quantization_config that skips 'stack'."
        )
    holder, found = find_layers(model)
    if wrapped := [type(part).__name__ for part in (model, holder, *found) if "forward" in vars(part)]:
        raise StackError(
            f"The forward method of this {wrapped[0]} is wrapped, as by a device_map over several devices. Use "
            f"hf_mech.models.stack.stacked({type(model).__name__}).from_pretrained(..., stack_gate={gate}, "
            "device_map=...)."
        )
    old, config = model.config, copy.deepcopy(model.config)
    if type(config) is not stock.config_class:
        raise StackError(
            f"This {stock.__name__} has a {type(config).__name__}; with a stack it is loaded by a "
            f"{stock.config_class.__name__}, so make the model with one."
        )
    config.__class__ = model_class.config_class
    options = {
        "use_stack": True,
        "stack_layers": None if layers == "all" else sorted(layers),
        "stack_gate": gate,
        "multi_pop": multi_pop,
        "stack_actions_from": actions_from,
        "stack_actions_start": actions_start,
        "stack_values": values,
        "stack_values_noise": values_noise,
        "stack_bottom": bottom,
        "stack_tolerance": tolerance,
        "output_stack_attentions": False,
    }
    for name, value in options.items():
        setattr(config, name, value)
    config.validate_architecture()
    for module in model.modules():
        if getattr(module, "config", None) is old:
            module.config = config
    if holder is model:
        with torch.device("meta"):
            model_class(config)  # transformers notes of a class, when one is built, what its outputs can record
    model.__class__ = model_class
    for new in place_stacks(model):
        for module in new.modules():
            holder._init_weights(module)
        like = next(weight for weight in found[new.layer_idx].parameters() if weight.is_floating_point())
        new.to(like.device, like.dtype).train(model.training)
    return model
